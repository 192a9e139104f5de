"""The wire archive: one message a line, compressed, as the museum hands it out."""

import gzip
import json

import numpy as np
import torch
from torch.utils.data import Dataset

SIGNS, MESSAGES, OPERATORS = 96, 24000, 40


def forge(path, seed=12):
    """Writes messages of operators with their own rhythm: durations (ms) of marks (+) and gaps (-)."""
    rng = np.random.default_rng(seed)
    who = rng.integers(OPERATORS, size=MESSAGES)
    pace, dash, lilt, shake = (
        rng.normal(70, 6, OPERATORS),
        rng.normal(3, 0.25, OPERATORS),
        rng.normal(0, 0.1, OPERATORS),
        rng.uniform(0.05, 0.15, OPERATORS),
    )
    long_ = rng.random((MESSAGES, SIGNS)) < 0.42
    base = np.where(long_, dash[who, None], 1.0) * pace[who, None]
    base *= 1 + lilt[who, None] * np.sin(np.arange(SIGNS) * (0.2 + 0.02 * who[:, None])) + shake[who, None] * rng.normal(size=base.shape)
    base[:, 1::2] *= -1
    with gzip.open(path, "wt", compresslevel=1) as out:
        for n, (operator, row) in enumerate(zip(who.tolist(), base.round().astype(int).tolist())):
            out.write(json.dumps({"no": n, "operator": operator, "station": f"PK{operator % 7}", "keying": row}) + "\n")


class Wire(Dataset):
    """Messages by number. A handle must not cross processes, so the archive is opened where it is read."""

    def __init__(self, path):
        self.path, self._lines = path, None

    def _open(self):
        with gzip.open(self.path, "rt") as archive:
            lines = [json.loads(line) for line in archive]
        keying = np.array([line["keying"] for line in lines], np.float32)
        return torch.from_numpy(keying), [line["operator"] for line in lines]

    def __len__(self):
        return MESSAGES

    def __getitem__(self, at):
        if self._lines is None:
            self._lines = self._open()
        keying, operator = self._lines
        row = keying[at] / 70
        return torch.stack([row.abs().log1p(), row.sign()]), operator[at]
