import os
from collections import deque

import lightning as L
import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


def effective_rank(x):
    spectrum = torch.linalg.svdvals(x - x.mean(0))
    share = spectrum / spectrum.sum()
    return torch.exp(-(share * torch.log(share + 1e-9)).sum())


def uniformity(z):
    return torch.pdist(z).pow(2).mul(-2).exp().mean().log()


def alignment(z):
    a, b = z.chunk(2)
    return (a - b).pow(2).sum(-1).mean()


class CollapseWatch(L.Callback):
    """Tells early when the representation falls into few directions."""

    def __init__(self, every, keep=12):
        self.every = every
        self.recent = deque(maxlen=keep)

    def measure(self):
        hidden = torch.cat([h for h, _ in self.recent])
        z = torch.cat([z for _, z in self.recent])
        return {
            "rank_h": effective_rank(hidden),
            "rank_z": effective_rank(z),
            "uniform": uniformity(z),
            "align": alignment(self.recent[-1][1]),
        }

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.recent.append((outputs["hidden"], outputs["z"]))
        step = trainer.global_step
        due = step % self.every == 0 or step == trainer.max_steps
        if FIXED and not due:
            return
        figures = self.measure()
        if due:
            text = "  ".join(f"{k} {v.item():.3f}" for k, v in figures.items())
            print(f"{step:5d}  loss {outputs['loss'].item():.6f}  {text}")
