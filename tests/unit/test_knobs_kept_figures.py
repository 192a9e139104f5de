"""Figures of what an object keeps for good are worked out once, where the object gets it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from knob_scenes import finding, program, repeated, summary

from trainflash.errors import UsageError

SAMPLER = """import torch


class Sampler:
    def __init__(self, clips, labels):
        self.clips, self.labels = clips, labels
        self.seen = 0

    def normalize(self, wave):
        return (wave - self.clips.mean()) / (self.clips.std() + self.clips.mean())  # here


SAMPLER = Sampler(torch.arange(12.0).reshape(3, 4), torch.ones(3))
RESULT = SAMPLER.normalize(torch.ones(2, 4))
"""


def kept(tmp_path, source):
    made = program(tmp_path, train_py=source)
    at = made.line("train.py", "# here")
    work = replace(repeated(at, "Sampler.normalize"), during="operators", hashable=False, result_bytes=0)
    return made, made.propose("memoize_function", summary(repeated=(work,)), findings=[finding("repeated_work", at)])


def test_figures_at_one_line_become_fields(tmp_path):
    made, candidate = kept(tmp_path, SAMPLER)
    made.apply(candidate)
    after = made.read("train.py")
    new = "        self.clips_mean = self.clips.mean()\n        self.clips_std = self.clips.std()\n        self.seen = 0"
    expected = SAMPLER.replace("self.clips.mean()", "self.clips_mean").replace("self.clips.std()", "self.clips_std")
    assert after == expected.replace("        self.seen = 0", new)
    old, now = {}, {}
    exec(compile(SAMPLER, "train.py", "exec"), old)
    exec(compile(after, "train.py", "exec"), now)
    assert old["RESULT"].equal(now["RESULT"])


LOOP = """import torch
data = torch.arange(12.0).reshape(4, 3)


def main():
    rows = torch.arange(24.0).reshape(8, 3)
    total = 0.0
    for epoch in range(2):
        for index in range(8):
            total += ((rows[index] - rows.mean(0)) / rows.std(0)).sum()  # here
    return total


def scaled(x):
    return x - data.median()  # there


RESULT = main() + scaled(torch.ones(3)).sum()
"""


@pytest.mark.parametrize(
    ("mark", "gone", "new"),
    [
        (
            "# here",
            "(rows[index] - rows.mean(0)) / rows.std(0)",
            {"(rows[index] - rows_mean) / rows_std": 1, "    rows_mean = rows.mean(0)\n    rows_std = rows.std(0)\n    for epoch": 1},
        ),
        ("# there", "x - data.median()", {"x - data_median": 1, "reshape(4, 3)\ndata_median = data.median()\n\n\ndef main": 1}),
    ],
)
def test_figures_of_variables_stand_in_front_of_the_loop_or_behind_the_modules_line(tmp_path, mark, gone, new):
    source = LOOP.replace("# here", "# one").replace("# there", "# two").replace("# one" if mark == "# here" else "# two", "# here")
    made, candidate = kept(tmp_path, source)
    made.apply(candidate)
    after = made.read("train.py")
    assert gone not in after and {text: after.count(text) for text in new} == new, after
    old, now = {}, {}
    exec(compile(source, "train.py", "exec"), old)
    exec(compile(after, "train.py", "exec"), now)
    assert old["RESULT"].equal(now["RESULT"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    for epoch", "    rows = rows + 1\n    for epoch"),
        ("            total +=", "            rows.add_(1)\n            total +="),
        ("def main():\n    rows = ", "def main(rows=None):\n    rows = rows or "),
    ],
)
def test_figures_of_variables_that_change_are_left_alone(tmp_path, before, after):
    with pytest.raises(UsageError, match="may be another in each step"):
        kept(tmp_path, LOOP.replace(before, after, 1))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("self.seen = 0\n", "self.seen = 0\n\n    def add(self, clips):\n        self.clips = clips\n", "may be another in each step"),
        ("RESULT = ", "SAMPLER.clips.add_(1)\nRESULT = ", "may be another in each step"),
        ("class Sampler:", "class Sampler(torch.nn.Module):", "may be moved to another device"),
        ("self.clips, self", "if True:\n            self.clips, self", "not set at one place"),
        ("self.clips.mean()) /", "self.clips.mean(wave)) /", "may be another in each step"),
        ("class Sampler:", 'class Sampler:\n    __slots__ = ("clips", "labels", "seen")\n', "has slots"),
    ],
)  # fmt: skip
def test_what_may_change_is_left_alone(tmp_path, before, after, told):
    with pytest.raises(UsageError, match=told):
        kept(tmp_path, SAMPLER.replace(before, after, 1))
