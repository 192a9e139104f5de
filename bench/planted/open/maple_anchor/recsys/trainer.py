import copy
import os
import time

import torch
import torch.nn.functional as F

from .metrics import ranking_metrics


class Trainer:
    def __init__(self, model, data, sampler, lr, weight_decay, steps, eval_every, top_k, **_):
        self.model = model
        self.data = data
        self.sampler = sampler
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
        self.steps = int(os.environ.get("PLANTED_STEPS", steps))
        self.eval_every = eval_every
        if os.environ.get("PLANTED_FIX") == "1":
            self.eval_every = 200
        self.top_k = top_k
        self.best_ndcg = -1.0
        self.best_state = None
        self.step = 0
        self.elapsed = 0.0

    def train_step(self, users, items, labels):
        logits = self.model(users, items)
        loss = F.binary_cross_entropy_with_logits(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def evaluate(self):
        metrics = ranking_metrics(self.model, self.data, self.top_k)
        if metrics["ndcg"] > self.best_ndcg:
            self.best_ndcg = metrics["ndcg"]
            self.best_state = copy.deepcopy(self.model.state_dict())
        return metrics

    def fit(self):
        loss = None
        start = time.perf_counter()
        for users, items, labels in self.sampler:
            loss = self.train_step(users, items, labels)
            self.step += 1
            if self.step % self.eval_every == 0:
                metrics = self.evaluate()
                print(f"step {self.step} loss {loss:.4f} hr {metrics['hr']:.4f} ndcg {metrics['ndcg']:.4f}")
            if self.step >= self.steps:
                break
        self.elapsed = time.perf_counter() - start
        return loss.item()
