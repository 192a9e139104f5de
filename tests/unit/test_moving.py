"""The lines of a diagnosis after something was accepted: they stand where the same text stands now."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from knob_scenes import diagnosis, finding, loader, summary

from trainflash.schema import Location
from trainflash.workflow import moving

OLD = (
    "import torch\n\n\ndef main():\n    train = DataLoader(a, batch_size=32)\n    val = DataLoader(b, batch_size=32)\n    fit(train, val)\n"
)


def diff(folder: Path, before: str, after: str) -> str:
    (folder / "a").mkdir(exist_ok=True), (folder / "b").mkdir(exist_ok=True)
    (folder / "a/train.py").write_text(before), (folder / "b/train.py").write_text(after)
    words = ["git", "diff", "--no-index", "--no-prefix", "a/train.py", "b/train.py"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_an_import_above_moves_what_a_run_named(tmp_path):
    moved = moving.shifts(diff(tmp_path, OLD, "import functools\n" + OLD))
    run = summary(loaders=(loader("train", Location("train.py", 5, "main")), loader("eval", Location("train.py", 6, "main"))))
    after = moving.carried(run, moved)
    assert [each.location for each in after.loaders] == [Location("train.py", 6, "main"), Location("train.py", 7, "main")]
    assert replace(after, loaders=run.loaders) == run
    found = moving.carried(diagnosis(finding("input_cpu", Location("train.py", 5)), finding("collate", Location("other.py", 5))), moved)
    assert [each.location.line for each in found.findings] == [6, 5]


@pytest.mark.parametrize(
    ("after", "lines"),
    [
        (OLD.replace("(a, batch_size=32)", "(a, batch_size=32, num_workers=2)"), [5, 6, 7]),
        (OLD.replace("    train =", "    seed()\n    train =").replace("size=32)\n    val", "size=64)\n    val"), [6, 7, 8]),
        (OLD.replace("    fit(", "    with bf16():\n        fit("), [5, 6, 8]),
        (OLD.replace("\n\ndef", "\ndef").replace("    train = DataLoader(a, batch_size=32)\n", ""), [4, 4, 5]),
        (OLD + "# end\n", [5, 6, 7]),
        (OLD, [5, 6, 7]),
    ],
    ids=["rewritten", "one line more", "indented", "taken away", "behind", "the same"],
)
def test_each_line_is_found_again(tmp_path, after, lines):
    moved = moving.shifts(diff(tmp_path, OLD, after)).get("train.py", ())
    assert [moving.line_now(moved, line) for line in (5, 6, 7)] == lines


def test_whatever_is_inserted_and_deleted_lines_that_stay_are_found(tmp_path):
    for seed in range(20):
        chance = random.Random(seed)
        before = [f"line {n} {chance.random()}" for n in range(60)]
        after = [row for row in before if chance.random() > 0.1]
        for _ in range(6):
            after.insert(chance.randrange(len(after) + 1), f"new {chance.random()}")
        moved = moving.shifts(diff(tmp_path, "\n".join(before) + "\n", "\n".join(after) + "\n")).get("train.py", ())
        for number, row in enumerate(before, 1):
            if row in after:
                assert moving.line_now(moved, number) == after.index(row) + 1, (seed, number)
