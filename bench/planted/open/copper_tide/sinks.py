"""Where the figures of a run go. A sink is made by its name in the config."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"
SINKS: dict[str, type["Sink"]] = {}


class Sink:
    """Takes what the trainer tells after a step."""

    if FIXED:
        every = 50
    else:
        every = 1

    def __init_subclass__(cls, name: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        SINKS[name] = cls

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        for option, value in options.items():
            if not hasattr(type(self), option):
                raise ValueError(f"{type(self).__name__} has no option {option!r}")
            setattr(self, option, value)

    def offer(self, step: int, figures: dict[str, float], model: nn.Module) -> None:
        if step % self.every == 0:
            self.take(step, figures, model)

    def take(self, step: int, figures: dict[str, float], model: nn.Module) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Console(Sink, name="console"):
    digits = 4

    def take(self, step: int, figures: dict[str, float], model: nn.Module) -> None:
        print(step, *(f"{name}={value:.{self.digits}f}" for name, value in figures.items()), flush=True)


class Journal(Sink, name="journal"):
    """A line of JSON each time, on the disk at once."""

    file_name = "journal.jsonl"

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, **options)
        self.file = (folder / self.file_name).open("w")

    def take(self, step: int, figures: dict[str, float], model: nn.Module) -> None:
        self.file.write(json.dumps({"step": step, **figures}) + "\n")
        self.file.flush()

    def close(self) -> None:
        self.file.close()


class Spread(Journal, name="spread"):
    """Percentiles of weights and gradients, for the plots of the weekly report."""

    file_name = "spread.jsonl"
    levels = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

    def take(self, step: int, figures: dict[str, float], model: nn.Module) -> None:
        levels = torch.tensor(self.levels)
        row = {}
        for name, weight in model.named_parameters():
            row[name] = weight.detach().flatten().quantile(levels).tolist()
            if weight.grad is not None:
                row[f"{name}.grad"] = weight.grad.flatten().quantile(levels).tolist()
        super().take(step, row, model)


def make_sinks(wanted: list[dict[str, Any]], folder: Path) -> list[Sink]:
    return [SINKS[options["name"]](folder, **{k: v for k, v in options.items() if k != "name"}) for options in wanted]
