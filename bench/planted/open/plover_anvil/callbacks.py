import copy
import gc
import os
import tempfile
from pathlib import Path

import torch

from mixer import denoising_loss


class Callback:
    def step(self, run): ...

    def tide(self, run): ...


class Average(Callback):
    def __init__(self, model, rate=0.01):
        self.model, self.rate = copy.deepcopy(model).requires_grad_(False), rate

    def step(self, run):
        torch._foreach_lerp_(list(self.model.parameters()), list(run.model.parameters()), self.rate)


class Held(Callback):
    def __init__(self, average, windows, every):
        self.average, self.windows, self.every = average, windows, every

    @torch.no_grad()
    def step(self, run):
        if run.count % self.every == 0:
            gen = torch.Generator().manual_seed(0)
            value = denoising_loss(self.average.model, self.windows, gen).item()
            print(f"{run.count}: train {run.mean:.4f}, held out {value:.4f}", flush=True)


class Keep(Callback):
    def __init__(self, average, every):
        self.average, self.every = average, every
        self.folder = Path(tempfile.mkdtemp(prefix="icequake-"))

    def step(self, run):
        if run.count % self.every == 0:
            part = self.folder / "part"
            torch.save({"model": run.model.state_dict(), "average": self.average.model.state_dict(), "count": run.count}, part)
            os.replace(part, self.folder / "last.pt")


class Tidy(Callback):
    def tide(self, run):
        if run.tides % 10 == 0:
            gc.collect()
