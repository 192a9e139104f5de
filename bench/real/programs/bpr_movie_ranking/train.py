"""Matrix factorisation with the BPR loss on made-up ratings; hit rate and NDCG against 99 random items each epoch."""

import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchmetrics.retrieval import RetrievalHitRate, RetrievalNormalizedDCG

N_USERS, N_ITEMS = 1200, 1500
PER_USER = 40
EPOCHS = 16


def make_ratings(seed=0):
    rng = np.random.default_rng(seed)
    users, items = rng.normal(size=(N_USERS, 8)), rng.normal(size=(N_ITEMS, 8))
    popularity = rng.gumbel(size=N_ITEMS)
    histories = []
    for u in range(N_USERS):
        score = items @ users[u] + 0.5 * popularity + rng.gumbel(size=N_ITEMS)
        histories.append(np.argsort(-score)[:PER_USER].tolist())
    return histories


class BPRDataset(Dataset):
    def __init__(self, histories):
        self.pairs = [(u, i) for u, items in enumerate(histories) for i in items]
        self.seen = [set(items) for items in histories]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        user, positive = self.pairs[index]
        negative = random.randrange(N_ITEMS)
        while negative in self.seen[user]:
            negative = random.randrange(N_ITEMS)
        return user, positive, negative


class BPR(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.user = nn.Embedding(N_USERS, dim)
        self.item = nn.Embedding(N_ITEMS, dim)
        self.bias = nn.Embedding(N_ITEMS, 1)
        nn.init.normal_(self.user.weight, std=0.05)
        nn.init.normal_(self.item.weight, std=0.05)
        nn.init.zeros_(self.bias.weight)

    def forward(self, users, items):
        return (self.user(users) * self.item(items)).sum(-1) + self.bias(items).squeeze(-1)


@torch.no_grad()
def evaluate(model, held_out, seen, device):
    model.eval()
    hit, ndcg = RetrievalHitRate(top_k=10), RetrievalNormalizedDCG(top_k=10)
    for user, item in enumerate(held_out):
        candidates = [item]
        while len(candidates) < 100:
            j = random.randrange(N_ITEMS)
            if j != item and j not in seen[user]:
                candidates.append(j)
        items = torch.tensor(candidates, device=device)
        scores = model(torch.full_like(items, user), items)
        target = torch.zeros(100, dtype=torch.long, device=device)
        target[0] = 1
        index = torch.full_like(items, user)
        hit.update(scores, target, indexes=index)
        ndcg.update(scores, target, indexes=index)
    return hit.compute().item(), ndcg.compute().item()


def main():
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    histories = make_ratings()
    held_out = [h[random.randrange(len(h))] for h in histories]
    train_histories = [[i for i in h if i != out] for h, out in zip(histories, held_out)]
    dataset = BPRDataset(train_histories)
    loader = DataLoader(dataset, batch_size=256, shuffle=True)

    model = BPR().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-6)
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for users, positives, negatives in loader:
            users, positives, negatives = users.to(device), positives.to(device), negatives.to(device)
            loss = -F.logsigmoid(model(users, positives) - model(users, negatives)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        hr, ndcg = evaluate(model, held_out, dataset.seen, device)
        print(f"epoch {epoch}: loss {total / len(loader):.4f} (chance {math.log(2):.4f}) HR@10 {hr:.3f} NDCG@10 {ndcg:.3f}")


if __name__ == "__main__":
    main()
