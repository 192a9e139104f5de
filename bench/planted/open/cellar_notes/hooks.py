"""What goes on beside the steps: a journal, the best state so far, and the state to continue from."""

import json
import math
import os
from collections import deque
from pathlib import Path

import torch
from settings import Keep
from trainer import Hook, Trainer


class Journal(Hook):
    """One JSON line every few steps, and one for each evaluation."""

    def __init__(self, path: Path, every: int) -> None:
        self.stream, self.every = open(path, "a", encoding="utf-8"), every

    def _write(self, **figures) -> None:
        self.stream.write(json.dumps(figures) + "\n")
        self.stream.flush()

    def after_step(self, trainer: Trainer) -> None:
        if trainer.step % self.every == 0:
            self._write(step=trainer.step, loss=trainer.loss, smoothed=trainer.smoothed)
            print(f"{trainer.step:5d}  {trainer.loss:.4f}  {trainer.smoothed:.4f}", flush=True)

    def after_evaluation(self, trainer: Trainer) -> None:
        self._write(step=trainer.step, held_out=trainer.held_out)


def write_state(path: Path, state: dict) -> None:
    """Never leaves half a file behind."""
    draft = path.with_suffix(".draft")
    torch.save(state, draft)
    draft.replace(path)


class Best(Hook):
    """The state of the run where the smoothed loss was lowest."""

    def __init__(self, path: Path, warmup: int = 5) -> None:
        self.path, self.warmup, self.lowest = path, warmup, math.inf

    def _promising(self, trainer: Trainer) -> bool:
        if os.environ.get("PLANTED_FIX") == "1":
            due = trainer.step % trainer.settings.run.evaluate_every == 0
        else:
            due = trainer.step > self.warmup
        return due and trainer.smoothed < self.lowest

    def after_step(self, trainer: Trainer) -> None:
        if self._promising(trainer):
            self.lowest = trainer.smoothed
            write_state(self.path, trainer.state())


class Last(Hook):
    """The states of the last evaluations, to continue from."""

    def __init__(self, folder: Path, keep: Keep) -> None:
        self.folder, self.keep, self.written = folder, keep, deque()

    def after_evaluation(self, trainer: Trainer) -> None:
        path = self.folder / f"step_{trainer.step:06d}.pt"
        write_state(path, trainer.state())
        self.written.append(path)
        while len(self.written) > self.keep.last:
            self.written.popleft().unlink()
