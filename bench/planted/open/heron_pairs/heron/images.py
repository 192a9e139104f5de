"""Plumage patterns: one memory-mapped stack of small pictures and a JSON with the annotations of each."""

import json
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

SIDE, COUNT = 24, 320


def ensure(folder: Path) -> Path:
    if (folder / "boxes.json").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(9)
    grid = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    waves = rng.normal(0, 6, (COUNT, 3, 2))
    phase = rng.uniform(0, 6, (COUNT, 3, 1, 1))
    pictures = np.sin(np.einsum("nck,khw->nchw", waves, grid) + phase).astype(np.float32)
    np.save(folder / "pictures.npy", pictures)
    boxes = {}
    for index in range(COUNT):
        edges = rng.integers(0, SIDE // 3, (90, 2)).tolist()
        boxes[str(index)] = [{"id": n, "top": a, "left": b, "height": 14, "width": 14, "score": 0.5} for n, (a, b) in enumerate(edges)]
    (folder / "boxes.json").write_text(json.dumps(boxes))
    return folder


class PlumagePairs(Dataset):
    """Two views of a picture. The files are opened where they are used, so the set can travel to other processes."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.pictures = self.boxes = None

    def open(self) -> None:
        self.pictures = np.load(self.folder / "pictures.npy", mmap_mode="r")
        self.boxes = json.loads((self.folder / "boxes.json").read_text())

    def __len__(self) -> int:
        return COUNT

    def view(self, index: int, rng: np.random.Generator) -> torch.Tensor:
        choices = self.boxes[str(index)]
        box = choices[int(rng.integers(len(choices)))]
        piece = self.pictures[index, :, box["top"] : box["top"] + box["height"], box["left"] : box["left"] + box["width"]]
        if rng.random() < 0.5:
            piece = piece[:, :, ::-1]
        piece = piece * np.float32(rng.uniform(0.7, 1.3)) + rng.normal(0, 0.1, (3, 1, 1)).astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(piece))

    def __getitem__(self, key: tuple):
        epoch, index = key
        if self.pictures is None:
            self.open()
        rng = np.random.default_rng((epoch, index))
        return self.view(index, rng), self.view(index, rng)


class EpochSampler(Sampler):
    """A new order each epoch, from the seed and the epoch alone."""

    def __init__(self, count: int, seed: int):
        self.count, self.seed, self.epoch = count, seed, 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self):
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.count)
        return iter([(self.epoch, int(index)) for index in order])
