import os
from pathlib import Path

import torch


class Keeper:
    """Holds the last few resumable states on disk, each one written whole or not at all."""

    def __init__(self, folder, keep):
        self.folder, self.keep = Path(folder), keep
        self.every = 100 if os.environ.get("PLANTED_FIX") == "1" else 1

    def after_step(self, studio):
        if (studio.done + 1) % self.every:
            return
        target = self.folder / f"studio_{studio.done:06d}.pt"
        partial = target.with_suffix(".part")
        with open(partial, "wb") as f:
            torch.save(studio.state(), f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(partial, target)
        for old in sorted(self.folder.glob("studio_*.pt"))[: -self.keep]:
            old.unlink()
