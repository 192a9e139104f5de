"""What happened in training, one JSON object per line."""

import json
from pathlib import Path

import numpy as np
from torch import nn


class Journal:
    def __init__(self, folder: Path, every: int = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = open(folder / "journal.jsonl", "w")
        self.every = every

    def write(self, step: int, loss: float, model: nn.Module) -> None:
        if step % self.every:
            return
        row: dict = {"step": step, "loss": loss}
        for name, p in model.named_parameters():
            for kind, value in (("w", p.detach()), ("g", p.grad)):
                counts, edges = np.histogram(value.numpy(), bins=64)
                row[f"{name}/{kind}"] = {"counts": counts.tolist(), "edges": edges.tolist(), "norm": float(value.norm())}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def close(self) -> None:
        self.file.close()
