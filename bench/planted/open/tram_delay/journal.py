"""Keeps the history of a run as JSON, so that the notebook can plot it while training goes on."""

import json
import os
import time
from pathlib import Path

import torch

EVERY = 100 if os.environ.get("PLANTED_FIX") == "1" else 1


class Journal:
    def __init__(self, folder: str):
        self.path = Path(folder) / "history.json"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.rows: list[dict] = []
        self.began = time.time()

    def note(self, step: int, loss: float, model: torch.nn.Module, lr: float) -> None:
        row = {"step": step, "loss": loss, "lr": lr, "seconds": time.time() - self.began}
        if step % EVERY == 0:
            row["weights"] = {name: self.describe(p.detach()) for name, p in model.named_parameters()}
            row["grads"] = {name: self.describe(p.grad) for name, p in model.named_parameters() if p.grad is not None}
        self.rows.append(row)
        if step % EVERY == 0:
            self.save()

    @staticmethod
    def describe(values: torch.Tensor) -> dict:
        flat = values.flatten().float()
        counts = torch.histc(flat, bins=20)
        return {"mean": flat.mean().item(), "std": flat.std().item(), "counts": counts.tolist()}

    def save(self) -> None:
        partial = self.path.with_suffix(".part")
        with open(partial, "w") as file:
            json.dump(self.rows[-60:], file, indent=1)
        os.replace(partial, self.path)
