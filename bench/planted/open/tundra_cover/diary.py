"""The diary of a run."""

import json
import os
import tempfile
from pathlib import Path

import torch

SUMMARY_EVERY = 200 if os.environ.get("PLANTED_FIX") == "2" else 1


class Diary:
    """Figures of each step, and now and then a summary of the weights, in one file of JSON lines."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.stream = (Path(self.folder.name) / "diary.jsonl").open("w")

    def step(self, number: int, model: torch.nn.Module, **figures: float) -> None:
        self._write({"step": number, **figures})
        if number % SUMMARY_EVERY == 0:
            self._write({"step": number, "weights": {name: self._summary(p.detach()) for name, p in model.named_parameters()}})

    @staticmethod
    def _summary(weights: torch.Tensor) -> dict[str, float | list[float]]:
        flat = weights.flatten()
        counts, edges = torch.histogram(flat, bins=32)
        return {
            "mean": float(flat.mean()), "norm": float(flat.norm()), "counts": counts.tolist(), "edges": edges.tolist(),
            "values": [round(value, 5) for value in flat.tolist()],
        }  # fmt: skip

    def _write(self, entry: dict) -> None:
        self.stream.write(json.dumps(entry) + "\n")
        self.stream.flush()

    def close(self) -> None:
        self.stream.close()
        self.folder.cleanup()
