import copy
import gc
import tempfile
from pathlib import Path

import torch


class Callback:
    def on_step(self, trainer):
        pass

    def on_end(self, trainer):
        pass


class History(Callback):
    def __init__(self):
        self.losses, self.norms = [], []

    def on_step(self, trainer):
        self.losses.append(trainer.loss.item())
        self.norms.append(trainer.norm.item())
        if trainer.step % 25 == 0:
            print(f"step {trainer.step}: loss {self.losses[-1]:.5f} grad norm {self.norms[-1]:.4f}")


class KeepBest(Callback):
    def __init__(self, every):
        self.every, self.best, self.state = every, float("inf"), None

    def on_step(self, trainer):
        if trainer.step % self.every == 0 and trainer.loss.item() < self.best:
            self.best = trainer.loss.item()
            self.state = copy.deepcopy(trainer.field.state_dict())


class Preview(Callback):
    """Looks at a small slice of the volume now and then."""

    def __init__(self, every, side=16):
        self.every = every
        line = torch.linspace(-1, 1, side)
        self.slice = torch.cartesian_prod(line, line, torch.zeros(1))

    @torch.no_grad()
    def on_step(self, trainer):
        if trainer.step % self.every == 0:
            trainer.field.eval()
            self.picture = trainer.field(self.slice).cpu().numpy().copy()
            trainer.field.train()


class Save(Callback):
    def __init__(self, every):
        self.every = every
        self.folder = tempfile.TemporaryDirectory()

    def on_step(self, trainer):
        if trainer.step % self.every == 0:
            torch.save(trainer.field.state_dict(), Path(self.folder.name) / "field.pt")
            gc.collect()

    def on_end(self, trainer):
        self.folder.cleanup()
