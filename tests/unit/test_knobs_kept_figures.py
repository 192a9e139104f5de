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
