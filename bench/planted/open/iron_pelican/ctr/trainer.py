import os
import time

import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, data, cfg, seed=0):
        self.model = model
        self.data = data
        self.cfg = cfg
        self.optimizers = {
            "mlp": torch.optim.Adam(model.mlp.parameters(), lr=cfg["lr"]),
            "tables": torch.optim.SparseAdam(list(model.tables.parameters()), lr=cfg["lr"]),
        }
        self.generator = torch.Generator().manual_seed(seed)
        self.step = 0
        self.out_dir = cfg["out_dir"]
        os.makedirs(self.out_dir, exist_ok=True)
        self.save_every = cfg["save_every"]
        if os.environ.get("PLANTED_FIX") == "1":
            self.save_every = 500

    def state(self):
        return {
            "step": self.step,
            "model": self.model.state_dict(),
            "optimizers": {k: o.state_dict() for k, o in self.optimizers.items()},
            "config": self.cfg,
        }

    def save(self, name):
        path = os.path.join(self.out_dir, name)
        torch.save(self.state(), path + ".tmp")
        os.replace(path + ".tmp", path)

    def train_step(self, cat, num, click):
        logit = self.model(cat, num)
        loss = F.binary_cross_entropy_with_logits(logit, click)
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()
        loss.backward()
        for optimizer in self.optimizers.values():
            optimizer.step()
        return loss

    def after_step(self, loss):
        if self.step % self.cfg["log_every"] == 0:
            print(f"step {self.step} logloss {loss.item():.4f}")
        if self.step % self.save_every == 0:
            self.save("last.pt")

    def run(self):
        start = time.perf_counter()
        for batch in self.data.batches(self.cfg["batch_size"], self.generator):
            loss = self.train_step(*batch)
            self.step += 1
            self.after_step(loss)
            if self.step >= self.cfg["steps"]:
                break
        took = time.perf_counter() - start
        print(f"{self.step} steps in {took:.2f} s, loss {loss.item():.6f}")
