"""Data sets that the recorded run never made a loader of refuse nothing."""

from __future__ import annotations

import textwrap

import pytest
from knob_scenes import finding, loader, program, summary

SOURCE = """
import lmdb
from torch.utils.data import DataLoader, Dataset


class Kept(Dataset):
    def __init__(self, path):
        self.env = lmdb.open(path)

    def __getitem__(self, index):
        return self.env.begin().get(index)

    def __len__(self):
        return 1000


class Rows(Dataset):
    def __getitem__(self, index):
        return index * 2.0

    def __len__(self):
        return 1000


def data_set(name):
    return Kept("x") if name == "kept" else Rows()


def main(name="rows"):
    for batch in DataLoader(data_set(name), batch_size=32):
        print(batch)
"""


@pytest.mark.parametrize(
    ("classes", "fits"),
    [((("train.py", "Rows"),), True), ((("train.py", "Rows"), ("train.py", "Kept")), False), (None, False)],
)
def test_a_class_that_no_loader_was_made_of_is_no_reason(tmp_path, classes, fits):
    made = program(tmp_path, train_py=textwrap.dedent(SOURCE))
    at = made.line("train.py", "DataLoader(data_set")
    run = summary(loaders=(loader("train", at, classes=classes, draws=False),), imported=("train.py",))
    candidates, refused, _ = made.plan(run, finding("input_cpu", at, ["dataloader_workers"]))
    assert ("dataloader_workers" in {each.knob for each in candidates}) is fits
    assert fits or any("`self.env` is read in a sample" in each.reason for each in refused)
