import os
from pathlib import Path

import torch


class Keeper:
    """Writes what is needed to go on after the machine was taken away. The last file stays whole until the new one is."""

    def __init__(self, folder, parts, every):
        self.folder, self.parts, self.every = Path(folder), parts, every
        self.folder.mkdir(exist_ok=True)

    def state(self):
        return {name: part.state_dict() for name, part in self.parts.items()}

    def after_step(self, step):
        if step % self.every:
            return
        new = self.folder / "last.tmp"
        torch.save({"step": step, **self.state()}, new)
        os.replace(new, self.folder / "last.pt")
