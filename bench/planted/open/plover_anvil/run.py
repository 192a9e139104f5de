"""Learns to take the noise off spectrograms of icequakes."""

import os
import time

import torch
from torch.nn.utils import clip_grad_norm_

from callbacks import Average, Held, Keep, Tidy
from icequakes import BANDS, TIMES, Glacier, listen
from mixer import Denoiser, denoising_loss


class Run:
    def __init__(self, steps, batch=32):
        torch.manual_seed(17)
        self.steps, self.count, self.tides, self.mean = steps, 0, 0, 1.0
        self.glacier = Glacier(20 * batch, batch, seed=9)
        self.model = Denoiser(TIMES, BANDS)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.gen = torch.Generator().manual_seed(23)
        average = Average(self.model)
        self.callbacks = [average, Held(average, listen(64, 10), 120), Keep(average, 200), Tidy()]

    def tell(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def one(self, clean):
        loss = denoising_loss(self.model, clean, self.gen)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.count += 1
        self.mean += 0.05 * (loss.item() - self.mean)
        self.tell("step")
        return loss

    def go(self):
        began = time.perf_counter()
        while self.count < self.steps:
            for clean in self.glacier.tide():
                loss = self.one(clean)
                if self.count == self.steps:
                    break
            self.tides += 1
            self.tell("tide")
        print(f"{self.count} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    Run(int(os.environ.get("PLANTED_STEPS", 550))).go()
