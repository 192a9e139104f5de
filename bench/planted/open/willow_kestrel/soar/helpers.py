import os
import time
from pathlib import Path

import torch

from .coach import Coach, Helper


class Speak(Helper):
    def __init__(self, every: int) -> None:
        self.every = every

    def after_step(self, coach: Coach) -> None:
        if coach.step % self.every == 0:
            print(f"{coach.step:>6} {coach.loss.item():.5f}", flush=True)

    def after(self, coach: Coach) -> None:
        seconds = time.perf_counter() - coach.began
        print(f"{coach.step} steps in {seconds:.2f}s, loss {coach.loss.item():.6f}")


class Logbook(Helper):
    """So that a flight cut short can go on: two entries, the older one is overwritten."""

    def __init__(self, folder: Path, every: int) -> None:
        self.folder, self.every = folder, every

    def after_step(self, coach: Coach) -> None:
        if coach.step % self.every:
            return
        entry = self.folder / f"entry{coach.step // self.every % 2}.pt"
        fresh = entry.with_suffix(".part")
        with open(fresh, "wb") as page:
            torch.save(coach, page)
        os.replace(fresh, entry)
