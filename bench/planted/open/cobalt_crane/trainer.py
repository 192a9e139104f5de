import os
from pathlib import Path

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Trainer:
    def __init__(self, pair, train_set, dev_set, args):
        self.pair = pair
        self.train_set = train_set
        self.dev_set = dev_set
        self.args = args
        self.optimizer = torch.optim.Adam(pair.student.parameters(), lr=args.lr)
        self.order = torch.Generator().manual_seed(args.seed)
        self.out = Path(args.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.step = 0
        self.loss = float("nan")

    def train_one(self, ids, stars):
        self.pair.train()
        loss = self.pair(ids, stars)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def evaluate(self):
        self.pair.eval()
        hits = 0
        for ids, stars in self.dev_set.batches(256):
            hits += (self.pair.student(ids).argmax(1) == stars).sum().item()
        return hits / len(self.dev_set)

    def snapshot(self):
        state = self.pair.student.state_dict() if FIXED else self.pair.state_dict()
        return {"step": self.step, "model": state, "optimizer": self.optimizer.state_dict()}

    def save(self):
        target = self.out / "last.pt"
        partial = target.with_suffix(".tmp")
        torch.save(self.snapshot(), partial)
        os.replace(partial, target)

    def fit(self, steps):
        while self.step < steps:
            for ids, stars in self.train_set.batches(self.args.batch_size, self.order):
                self.loss = self.train_one(ids, stars)
                self.step += 1
                if self.step % self.args.log_every == 0:
                    print(f"step {self.step:4d}  loss {self.loss.item():.6f}", flush=True)
                if self.step % self.args.eval_every == 0:
                    print(f"step {self.step:4d}  dev accuracy {self.evaluate():.4f}", flush=True)
                if self.step % self.args.save_every == 0:
                    self.save()
                if self.step >= steps:
                    break
        self.save()
