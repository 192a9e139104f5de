"""A collate function that pads to the longest sample gives the batches of before without columns that hold padding alone."""

from __future__ import annotations

import random

import pytest
import torch
from knob_runs import applied, run_for
from knob_scenes import diagnosis

from trainflash import knobs
from trainflash.schema import Command, Location

HEAD = """import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
MAX, PAD = 12, 0
class Settings:
    max_length = 12
cfg = Settings()
"""
ROUNDS = 30
PROGRAMS = {
    "a list of cut samples": """
def collate(rows):
    numbers = [list(r["x"]) for r in rows]
    out = torch.full((len(rows), MAX), PAD)
    for row, ids in zip(out, numbers):
        ids = ids[:MAX]
        row[: len(ids)] = torch.tensor(ids)
    return out
""",
    "the end of each sample, and a mask": """
def collate(rows):
    out = torch.full((len(rows), cfg.max_length), PAD)
    mask = torch.zeros(len(rows), cfg.max_length)
    for i, r in enumerate(rows):
        ids = r["x"][-cfg.max_length :]
        out[i, : len(ids)] = torch.tensor(ids)
        mask[i, : len(ids)] = 1
    return out, mask
""",
    "counted samples": """
def collate(rows):
    out = np.zeros((len(rows), MAX), dtype=np.int64)
    for i in range(len(rows)):
        n = min(len(rows[i]["x"]), MAX)
        out[i, :n] = rows[i]["x"][:n]
    return torch.from_numpy(out)
""",
    "lists": """
def collate(rows):
    ids, mask = [], []
    for r in rows:
        cut = r["x"][:MAX]
        n_pad = MAX - len(cut)
        ids.append(cut + [PAD] * n_pad)
        mask.append([1] * len(cut) + [0] * n_pad)
    return torch.tensor(ids), torch.tensor(mask)
""",
    "tokens around": """
def collate(rows):
    ids = [r["x"][: MAX - 2] for r in rows]
    return torch.tensor([[5] + x + [6] + [PAD] * (MAX - len(x) - 2) for x in ids])
""",
    "padding in front": """
def collate(rows):
    cut = [r["x"][:MAX] for r in rows]
    return torch.tensor([[PAD] * (MAX - len(x)) + x for x in cut]).flip(1)
""",
    "stacked": """
def collate(rows):
    cut = [torch.tensor(r["x"][:MAX]) for r in rows]
    return torch.stack([F.pad(x, (0, MAX - x.numel())) for x in cut])
""",
    "zeros behind": """
def collate(rows):
    out = []
    for r in rows:
        x = torch.tensor(r["x"])[:MAX]
        out.append(torch.cat([x, torch.zeros(MAX - x.shape[0], dtype=x.dtype)]))
    return torch.stack(out)
""",
    "a method that says the width": """
class Collate:
    def room(self, rows):
        if cfg.max_length:
            return cfg.max_length
        return max(len(r["x"]) for r in rows)
    def __call__(self, rows):
        size = self.room(rows)
        out = torch.zeros((len(rows), size), dtype=torch.long)
        for row, r in zip(out, rows):
            words = r["x"][:size]
            row[: len(words)] = torch.tensor(words)
        return out
collate = Collate()
""",
    "two transposed lists": """
def collate(rows):
    xs, ys = zip(*[(r["x"][:MAX], r["y"]) for r in rows])
    a = torch.zeros(len(xs), MAX, dtype=torch.long)
    b = torch.zeros(len(ys), MAX, dtype=torch.long)
    for i, (x, y) in enumerate(zip(xs, ys)):
        a[i, : len(x)] = torch.tensor(x)
    for i, y in enumerate(ys):
        b[i, : len(y)] = torch.tensor(y)
    for i, x in enumerate(xs):
        a[i, : len(x)] = torch.tensor(x)
    return a, b
""",
}


@pytest.mark.parametrize("how", PROGRAMS)
def test_batches_are_the_same_without_their_padding(tmp_path, how):
    source = HEAD + PROGRAMS[how] + "train = DataLoader([0], collate_fn=collate)\n"
    (tmp_path / "train.py").write_text(source, encoding="utf-8")
    lines = source.splitlines()
    name = "def __call__" if "def __call__" in source else "def collate"
    collate = Location("train.py", next(number for number, line in enumerate(lines, 1) if name in line))
    made = Location("train.py", len(lines))
    knob = knobs.get("pad_to_longest")
    run, found = run_for(knob, made, train_loader__location=made, train_loader__collate_location=collate)
    seen = {"diagnosis": diagnosis(found), "summary": run, "checkout": tmp_path, "command": Command(("python", "train.py"))}
    candidate = knobs.propose(knob, None, None, memory_bytes=1, **seen)
    before, after = {}, {}
    exec(source, before)
    exec(applied(tmp_path, candidate.diff)["train.py"], after)
    narrower = [each for rows in batches() for each in compared(before["collate"](rows), after["collate"](rows))]
    assert any(narrower)


def batches() -> list[list[dict[str, list[int]]]]:
    """Batches of one to four samples; of `x` some are longer than the limit, of `y` none."""
    rng = random.Random(4)

    def sample() -> dict[str, list[int]]:
        return {key: [rng.randint(1, 9) for _ in range(rng.choice(sizes))] for key, sizes in (("x", (1, 3, 8, 15)), ("y", (1, 5, 9)))}

    return [[sample() for _ in range(rng.randint(1, 4))] for _ in range(ROUNDS)]


def compared(old, new) -> list[bool]:
    """Whether each tensor became narrower. Fails where more went away than zeros behind all samples."""
    pairs = zip(old, new, strict=True) if isinstance(old, tuple) else [(old, new)]
    found = []
    for was, now in pairs:
        assert torch.equal(was[:, : now.shape[1]], now)
        assert not was[:, now.shape[1] :].any()
        found.append(now.shape[1] < was.shape[1])
    return found
