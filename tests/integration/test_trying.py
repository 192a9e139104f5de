"""`optimize try`: what is refused before anything runs, in one line and without a word of costs; and what a kill left behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trainflash import tuning_log
from trainflash.cli import main
from trainflash.schema import Command, Verdict
from trainflash.workflow import optimizing
from trainflash.workflow.session import create
from trainflash.workflow.verifying import Demands

COMMAND = Command(("python", "train.py"))
BAD = {
    "counts.diff": ("--- a/train.py\n+++ b/train.py\n@@ -1,9 +1,9 @@\n-one\n+two\n", "let `diff -u` or `git diff` write it"),
    "names.diff": ("--- train.py\n+++ train.py\n@@ -1 +1 @@\n-one\n+two\n", "name each file as `--- a/FILE`"),
    "absent.diff": ("--- a/src/train.py\n+++ b/src/train.py\n@@ -1 +1 @@\n-one\n+two\n", "relative to the project, after a/ and b/"),
    "stale.diff": ("--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-one\n+two\n", "against the worktree of the sandbox"),
}


@pytest.fixture
def tried(capsys):
    """What `optimize try` says to bad input."""

    def told(*words: str) -> list[str]:
        assert main(["optimize", "try", *words, "--", "python", "train.py"]) == 2
        said = capsys.readouterr()
        assert not said.out
        return said.err.strip().splitlines()

    return told


def test_what_is_refused_is_refused_before_costs_are_told(found, tried, monkeypatch):
    monkeypatch.chdir(found.sandbox.project)
    box = ("--sandbox", str(found.directory))
    for name, (text, mend) in BAD.items():
        path = found.directory / name
        path.write_text(text)
        said, mended = tried("--patch", str(path), *box)
        assert said.startswith("error: the diff does not apply: ") and mend in mended
    for words, says in (
        (("--patch", str(found.directory / "stale.diff"), "--at", "train.py:1"), "--at goes with a knob"),
        (("dataloader_workers=",), "the value behind = is missing"),
        (("no_such_knob",), "there is no knob 'no_such_knob'"),
    ):
        said, _ = tried(*words, *box)
        assert says in said


@pytest.fixture
def found(user):
    return create(user.project, user.project.parent / "box")


def patch(found, text: str):
    """A patch file that puts `text` at the head of the program, always under one name."""
    head = Path(found.sandbox.project, "train.py").read_text().splitlines()[:3]
    path = found.directory / "it.diff"
    kept = "".join(f" {line}\n" for line in head)
    path.write_text(f"--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,4 @@\n+{text}\n{kept}")
    return optimizing.from_patch(path)


def test_a_verdict_whose_entry_a_kill_cost_gets_it_with_the_next_try(found):
    one = optimizing.make(found, patch(found, "# one"), COMMAND, Demands())
    judged = Verdict("reject", None, None, 4, ("speed: not faster",))
    found.save(replace(one, verdict=judged, decision="rejected"))  # and killed before the log was written
    optimizing.begin(found, patch(found, "# two"), COMMAND, Demands())
    entries = [entry for entry in tuning_log.read(found.log_path).entries if entry.kind == "experiment"]
    assert [(entry.experiment, entry.decision) for entry in entries] == [(1, "rejected")]


def test_a_killed_try_is_taken_up_only_by_the_same_patch(found):
    again = replace(Demands(), take_up=True)
    assert optimizing.begin(found, patch(found, "# one"), COMMAND, Demands()).n == 1
    assert optimizing.begin(found, patch(found, "# one"), COMMAND, again).n == 1
    assert optimizing.begin(found, patch(found, "# another"), COMMAND, again).n == 2
