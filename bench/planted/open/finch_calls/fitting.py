"""The fit: updates of a fixed effective batch, gathered over several device batches."""

import itertools
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from calls import Calls
from listener import Listener


def endless(loader):
    for _ in itertools.count():
        yield from loader


class Fit:
    def __init__(self, cfg):
        fit = cfg.fit
        torch.manual_seed(fit.seed)
        self.fit_cfg = fit
        if fit.effective_batch % fit.device_batch:
            raise ValueError("effective_batch must be a multiple of device_batch")
        self.parts = fit.effective_batch // fit.device_batch
        usable = len(Calls(cfg.data, fit.seed)) // fit.effective_batch * fit.effective_batch
        dataset = torch.utils.data.Subset(Calls(cfg.data, fit.seed), range(usable))
        generator = torch.Generator().manual_seed(fit.seed)
        self.loader = DataLoader(dataset, fit.device_batch, shuffle=True, generator=generator)
        self.held_out = DataLoader(Calls(cfg.data, fit.seed + 1, augment=False), 64)
        self.model = Listener(cfg.data.bands, cfg.model.width, cfg.model.layers, cfg.data.species)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=fit.lr, weight_decay=0.02)

    def accumulate(self, batches) -> float:
        total = 0.0
        for _ in range(self.parts):
            pictures, labels = next(batches)
            loss = F.cross_entropy(self.model(pictures), labels) / self.parts
            loss.backward()
            total += loss.item()
        return total

    @torch.no_grad()
    def validate(self) -> float:
        pictures, labels = next(iter(self.held_out))
        return (self.model(pictures).argmax(-1) == labels).float().mean().item()

    def run(self):
        fit, value = self.fit_cfg, float("nan")
        batches = endless(self.loader)
        began = time.time()
        for update in range(1, fit.updates + 1):
            self.optimizer.zero_grad()
            value = self.accumulate(batches)
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            if update % fit.report_every == 0:
                print(f"update {update} loss {value:.4f} norm {norm:.3f}", flush=True)
            if update % fit.val_every == 0:
                print(f"update {update} accuracy {self.validate():.3f}", flush=True)
        print(f"{fit.updates} steps in {time.time() - began:.3f}s, loss {value:.6f}")
