import time

import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, loader, cfg):
        self.model = model
        self.loader = loader
        self.cfg = cfg
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=cfg["weight_decay"])
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda s: min(1.0, (s + 1) / 50))
        self.step = 0
        self.last_loss = float("nan")

    def train_step(self, batch):
        self.model.train()
        logits = self.model(batch["input_ids"], batch["mask"])
        loss = F.cross_entropy(logits, batch["labels"])
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg["grad_clip"])
        self.optimizer.step()
        self.scheduler.step()
        return loss

    def batches(self):
        while True:
            yield from self.loader

    def fit(self):
        start = time.perf_counter()
        for batch in self.batches():
            loss = self.train_step(batch)
            self.step += 1
            if self.step % self.cfg["log_every"] == 0:
                print(f"step {self.step} loss {loss.item():.4f} lr {self.scheduler.get_last_lr()[0]:.2e}")
            if self.step >= self.cfg["steps"]:
                break
        self.last_loss = loss.item()
        print(f"{self.step} steps in {time.perf_counter() - start:.2f} s, loss {self.last_loss:.6f}")
