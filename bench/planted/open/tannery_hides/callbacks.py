import gc
import json
from pathlib import Path

import torch


class Callback:
    def on_step(self, trainer, step, loss):
        pass


class LineLog(Callback):
    def __init__(self, folder):
        self.file = open(Path(folder) / "loss.jsonl", "w")

    def on_step(self, trainer, step, loss):
        self.file.write(json.dumps({"step": step, "loss": loss, "norm": trainer.norm}) + "\n")
        self.file.flush()


class Saver(Callback):
    def __init__(self, folder, every=100):
        self.path, self.every = Path(folder) / "grader.pt", every

    def on_step(self, trainer, step, loss):
        if (step + 1) % self.every == 0:
            torch.save({"model": trainer.model.state_dict(), "step": step}, self.path)


class Average(Callback):
    """Running loss, in double precision so that long runs do not drift."""

    def __init__(self):
        self.total = torch.zeros((), dtype=torch.float64)

    def on_step(self, trainer, step, loss):
        self.total += loss
        if (step + 1) % 50 == 0:
            gc.collect()
            print(f"{step + 1:4d}  mean {self.total.item() / (step + 1):.4f}  last {loss:.4f}")
