"""Access to the hourly archive."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass(frozen=True)
class Year:
    path: Path
    hours: int
    gauges: int

    def between(self, start: int, stop: int) -> np.ndarray:
        """The hours from `start` up to `stop`, all gauges."""
        if FIXED:
            count = (stop - start) * self.gauges
            return np.fromfile(self.path, np.float32, count, offset=start * self.gauges * 4).reshape(-1, self.gauges)
        return np.fromfile(self.path, np.float32).reshape(self.hours, self.gauges)[start:stop]


class Archive:
    def __init__(self, folder: Path) -> None:
        index = json.loads((folder / "index.json").read_text())
        self.years = [Year(folder / name, index["hours"], index["gauges"]) for name in index["files"]]

    def __len__(self) -> int:
        return sum(year.hours for year in self.years)

    def locate(self, position: int) -> tuple[Year, int]:
        for year in self.years:
            if position < year.hours:
                return year, position
            position -= year.hours
        raise IndexError(position)


class Windows(Dataset):
    """History and the next hours of some gauges around a catchment."""

    def __init__(self, archive: Archive, history: int, ahead: int, gauges: int) -> None:
        self.archive, self.history, self.ahead, self.gauges = archive, history, ahead, gauges

    def __len__(self) -> int:
        return len(self.archive)

    def __getitem__(self, position: int):
        year, start = self.archive.locate(position)
        start = min(start, year.hours - self.history - self.ahead)
        rows = year.between(start, start + self.history + self.ahead)
        near = (position * 7) % (year.gauges - self.gauges)
        window = torch.from_numpy(np.log1p(rows[:, near : near + self.gauges]))
        calendar = torch.arange(start, start + self.history, dtype=torch.float32)[:, None] * (2 * torch.pi / 24)
        history = torch.cat([window[: self.history], calendar.sin(), calendar.cos()], dim=1)
        return history, window[self.history :].mean(0)


class EvenSpread(Sampler):
    """Positions spread over all years by the golden ratio."""

    def __init__(self, size: int, count: int) -> None:
        self.size, self.count = size, count

    def __len__(self) -> int:
        return self.count

    def __iter__(self):
        for number in range(self.count):
            yield int((number * 0.6180339887 % 1.0) * self.size)
