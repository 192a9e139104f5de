"""A diary of the game, one JSON object a line."""

import json
import time
from pathlib import Path

import numpy as np


def spread(values: np.ndarray, bins: int = 32) -> dict:
    counts, edges = np.histogram(values, bins=bins)
    return {
        "counts": counts.tolist(),
        "low": float(edges[0]),
        "high": float(edges[-1]),
        "quantiles": np.quantile(values, [0.05, 0.5, 0.95]).tolist(),
    }


class Diary:
    def __init__(self, path: str, every: int):
        self.path = Path(path)
        self.path.unlink(missing_ok=True)
        self.every = every
        self.file = self.path.open("a")

    def page(self, step: int, scalars: dict, models: dict) -> None:
        if step % self.every:
            return
        record = {"step": step, "when": time.strftime("%H:%M:%S"), **scalars}
        for name, model in models.items():
            for key, parameter in model.named_parameters():
                record[f"{name}.{key}"] = spread(parameter.detach().numpy().ravel())
                if parameter.grad is not None:
                    record[f"{name}.{key}.grad"] = spread(parameter.grad.numpy().ravel())
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def trim(self, limit: int = 20_000_000) -> None:
        """Starts the file anew when it gets long."""
        if self.file.tell() > limit:
            self.file.truncate(0)

    def close(self) -> None:
        self.file.close()
