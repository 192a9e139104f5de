"""A run tracker that needs no server: scalars and distributions as lines of JSON."""

import json
import os
from pathlib import Path

import numpy as np
import torch

FIX = os.environ.get("PLANTED_FIX") == "1"


class Tracker:
    def __init__(self, folder: Path, watch_every: int = 200 if FIX else 1, bins: int = 64):
        folder.mkdir(parents=True, exist_ok=True)
        self.file = open(folder / "events.jsonl", "w")
        self.watch_every, self.bins = watch_every, bins
        self.models: dict[str, torch.nn.Module] = {}

    def watch(self, **models: torch.nn.Module) -> None:
        self.models.update(models)

    def distribution(self, values: torch.Tensor) -> dict:
        flat = values.detach().flatten().numpy()
        counts, edges = np.histogram(flat, bins=self.bins)
        marks = np.percentile(flat, [1, 25, 50, 75, 99])
        return {"counts": counts.tolist(), "low": float(edges[0]), "high": float(edges[-1]), "marks": marks.round(6).tolist()}

    def log(self, step: int, **scalars: float) -> None:
        record: dict = {"step": step, **{name: round(value, 6) for name, value in scalars.items()}}
        if step % self.watch_every == 0:
            for prefix, model in self.models.items():
                for name, parameter in model.named_parameters():
                    record[f"{prefix}/{name}"] = self.distribution(parameter)
                    if parameter.grad is not None:
                        record[f"{prefix}/{name}.grad"] = self.distribution(parameter.grad)
        self.file.write(json.dumps(record) + "\n")

    def close(self) -> None:
        self.file.close()
