import os
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from tempo.data import make_tracks
from tempo.model import TempoNet

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Trainer:
    def __init__(self, cfg) -> None:
        self.cfg = cfg
        torch.manual_seed(cfg.trainer.seed)
        if not FIXED:
            torch.autograd.set_detect_anomaly(cfg.trainer.detect_anomaly)
        self.loader = DataLoader(make_tracks(**vars(cfg.data), seed=cfg.trainer.seed), cfg.trainer.batch_size, shuffle=True, drop_last=True)
        self.model = TempoNet(cfg.data.bands, cfg.model.hidden, cfg.model.cells)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.optim.lr, fused=True)
        self.limit = int(os.environ.get("PLANTED_STEPS", 10**9))

    def training_step(self, batch) -> torch.Tensor:
        x, y = batch
        loss = F.smooth_l1_loss(self.model(x), y)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.optim.clip)
        self.optimizer.step()
        return loss.detach()

    def fit(self) -> None:
        step, start = 0, time.perf_counter()
        for epoch in range(self.cfg.trainer.epochs):
            for batch in self.loader:
                loss = self.training_step(batch)
                step += 1
                if step % self.cfg.trainer.log_every == 0:
                    print(f"epoch {epoch} step {step} loss {loss.item():.5f}", flush=True)
                if step >= self.limit:
                    break
            if step >= self.limit:
                break
        print(f"{step} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")
