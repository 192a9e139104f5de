"""What happens around the steps."""

import os
import tempfile
from pathlib import Path

import torch

KEEP_EVERY = 100 if os.environ.get("PLANTED_FIX") == "2" else 4


class Callback:
    def on_step(self, run) -> None: ...
    def on_end(self, run) -> None: ...


class Keeper(Callback):
    """Keeps the last state on disk."""

    def __init__(self, every: int = KEEP_EVERY) -> None:
        self.every = every
        self.folder = tempfile.TemporaryDirectory()

    def on_step(self, run) -> None:
        if run.step % self.every == 0:
            state = {"model": run.model.state_dict(), "optimizer": run.optimizer.state_dict(), "step": run.step}
            torch.save(state, Path(self.folder.name) / "last.pt")

    def on_end(self, run) -> None:
        self.folder.cleanup()


class Ledger(Callback):
    """A line for each ten steps."""

    def __init__(self, every: int = 10) -> None:
        self.every, self.lines = every, []

    def on_step(self, run) -> None:
        self.lines.append((run.step, run.loss))
        if run.step % self.every == 0:
            recent = [loss for _, loss in self.lines[-self.every :]]
            print(f"step {run.step:4d}  loss {sum(recent) / len(recent):.4f}  lr {run.optimizer.param_groups[0]['lr']:.2e}", flush=True)


class Warmup(Callback):
    def __init__(self, steps: int, lr: float) -> None:
        self.steps, self.lr = steps, lr

    def on_step(self, run) -> None:
        for group in run.optimizer.param_groups:
            group["lr"] = self.lr * min(1.0, (run.step + 1) / self.steps)


class Shadow(Callback):
    """Moving average of the weights for the final report."""

    def __init__(self, decay: float = 0.98) -> None:
        self.decay, self.weights = decay, None

    @torch.no_grad()
    def on_step(self, run) -> None:
        current = [p.detach() for p in run.model.head.parameters()]
        if self.weights is None:
            self.weights = [p.clone() for p in current]
        torch._foreach_lerp_(self.weights, current, 1 - self.decay)
