import time

import torch

from .losses import batch_hard_triplet_loss


class Trainer:
    def __init__(self, cfg, model, data, sampler):
        self.cfg = cfg
        self.model = model
        self.data = data
        self.sampler = sampler
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
        self.step = 0
        self.elapsed = 0.0

    def training_step(self, picks):
        images, labels = self.data.images[picks], self.data.labels[picks]
        embeddings = self.model(images)
        loss = batch_hard_triplet_loss(embeddings, labels, self.cfg.margin)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def fit(self, steps):
        self.model.train()
        start = time.perf_counter()
        for picks in self.sampler:
            loss = self.training_step(picks)
            self.step += 1
            if self.step % self.cfg.print_every == 0:
                print(f"[{self.step:5d}/{steps}] triplet loss {loss.item():.4f}")
            if self.step >= steps:
                break
        self.elapsed = time.perf_counter() - start
        return loss.item()

    @torch.no_grad()
    def recall_at_1(self):
        self.model.eval()
        embeddings = torch.cat([self.model(chunk) for chunk in self.data.images.split(256)])
        similarity = embeddings @ embeddings.T
        similarity.fill_diagonal_(-2.0)
        nearest = similarity.argmax(dim=1)
        return (self.data.labels[nearest] == self.data.labels).float().mean().item()
