import torch
from sklearn.linear_model import RidgeClassifier


class Probe:
    """How well a nearest-neighbour vote and a linear read-out on the features know the gait."""

    def __init__(self, encoder, bank, queries, k=15):
        self.encoder, self.bank, self.queries, self.k = encoder, bank, queries, k
        self.best = 0.0

    @torch.no_grad()
    def features(self, x):
        self.encoder.eval()
        out = torch.cat([self.encoder(part) for part in x.split(256)])
        self.encoder.train()
        return torch.nn.functional.normalize(out, dim=1)

    def vote(self, known, labels, unknown):
        near = (unknown @ known.T).topk(self.k, dim=1).indices
        return labels[near].mode(1).values

    def __call__(self, engine):
        (bank, bank_y), (queries, queries_y) = self.bank, self.queries
        known, unknown = self.features(bank), self.features(queries)
        near = (self.vote(known, bank_y, unknown) == queries_y).float().mean().item()
        linear = RidgeClassifier().fit(known.numpy(), bank_y.numpy()).score(unknown.numpy(), queries_y.numpy())
        engine.metrics.update(near=near, linear=linear)
        self.best = max(self.best, near)
