import os
from pathlib import Path

import torch


class Keeper:
    """Writes the state of a run so that it can go on after a power cut; keeps the last two."""

    def __init__(self, folder, every):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.every = every

    def after(self, step, model, optimizer):
        if step % self.every:
            return
        path = self.folder / f"step{(step // self.every) % 2}.pt"
        state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
        with open(path, "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
