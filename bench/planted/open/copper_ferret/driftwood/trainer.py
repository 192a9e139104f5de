import time

import torch
from torch.nn import functional as F

from .meters import ClickMeter


class Trainer:
    def __init__(self, model, opt, max_steps, sched=None, clip=1.0, log_every=50):
        self.model, self.opt, self.sched = model, opt, sched
        self.max_steps, self.clip, self.log_every = max_steps, clip, log_every
        self.meter = ClickMeter()
        self.step, self.last_loss = 0, None

    def train_batch(self, batch):
        logits = self.model(batch)
        loss = F.binary_cross_entropy_with_logits(logits, batch["click"])
        self.opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.opt.step()
        if self.sched is not None:
            self.sched.step()
        self.meter.update(logits, batch["click"])
        return loss.detach()

    def report(self):
        stats = "  ".join(f"{k} {v:.4f}" for k, v in self.meter.summary().items())
        print(f"[{self.step:4d}] loss {self.last_loss.item():.4f}  {stats}")

    def fit(self, batches):
        begin = time.perf_counter()
        epoch = 0
        while self.step < self.max_steps:
            self.meter.reset()
            for batch in batches(epoch):
                self.last_loss = self.train_batch(batch)
                self.step += 1
                if self.step % self.log_every == 0:
                    self.report()
                if self.step == self.max_steps:
                    break
            epoch += 1
        return time.perf_counter() - begin
