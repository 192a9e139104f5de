"""A field library of lichen spectra: one binary file of readings, one text file that says which reading is what."""

import json

import numpy as np
from torch.utils.data import Dataset

BANDS = 160


def write(folder, readings, species, seed):
    """Stands in for the export of the spectrometer."""
    rng = np.random.default_rng(seed)
    pure = np.cumsum(rng.normal(0, 0.2, (species, BANDS)), 1)
    kind = rng.integers(species, size=readings)
    data = np.lib.format.open_memmap(folder / "readings.npy", "w+", np.float32, (readings, BANDS))
    for lo in range(0, readings, 8192):
        part = kind[lo : lo + 8192]
        data[lo : lo + 8192] = pure[part] * rng.uniform(0.7, 1.3, (len(part), 1)) + rng.normal(0, 0.3, (len(part), BANDS))
    data.flush()
    sun, wet = rng.random(readings).round(3).tolist(), rng.random(readings).round(3).tolist()
    with open(folder / "labels.jsonl", "w") as f:
        for i, k in enumerate(kind.tolist()):
            f.write(
                f'{{"reading": {i}, "species": {k}, "sun": {sun[i]}, "wet": {wet[i]}, "site": "L{i % 311}", "use": {str(i % 17 > 0).lower()}}}\n'
            )


class Shelf:
    """Open files of a library."""

    def __init__(self, folder):
        self.data = np.load(folder / "readings.npy", mmap_mode="r")
        self.groups = {}
        with open(folder / "labels.jsonl") as f:
            for line in f:
                label = json.loads(line)
                if label["use"]:
                    self.groups.setdefault(label["species"], []).append((label["reading"], label["sun"], label["wet"]))


class Pairs(Dataset):
    """Two readings of one species."""

    def __init__(self, folder, count):
        self.folder, self.count, self._shelf = folder, count, None

    @property
    def shelf(self):
        if self._shelf is None:
            self._shelf = Shelf(self.folder)
        return self._shelf

    def __len__(self):
        return self.count

    def __getitem__(self, key):
        rng = np.random.default_rng(key)
        species = int(rng.integers(len(self.shelf.groups)))
        group = self.shelf.groups[species]
        return tuple(self.view(*group[int(rng.integers(len(group)))]) for _ in range(2))

    def view(self, reading, sun, wet):
        return np.append(self.shelf.data[reading], (sun, wet)).astype(np.float32)
