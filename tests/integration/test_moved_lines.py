"""After something was accepted a knob still finds the call that the diagnosed run named, and not the one that stands at its line now."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from knob_scenes import added, diagnosis, finding, loader, summary

from trainflash.schema import Command, Location, RunRecord, write_document
from trainflash.workflow import moving, optimizing
from trainflash.workflow.session import create
from trainflash.workflow.verifying import Demands

COMMAND = Command(("python", "train.py"))
SOURCE = """import torch
from torch.utils.data import DataLoader

val = DataLoader(b, num_workers=0)
train = DataLoader(a, num_workers=0)
"""
PATCH = "--- a/train.py\n+++ b/train.py\n@@ -1,2 +1,3 @@\n+import functools\n import torch\n from torch.utils.data import DataLoader\n"


@pytest.fixture
def diagnosed(tmp_path):
    """A session whose newest diagnosis names the training loader at line 5, and whose accepted patch moved it to line 6."""
    project = tmp_path / "p"
    project.mkdir()
    (project / "train.py").write_text(SOURCE)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=o", "-c", "user.email=o@localhost", *words], cwd=project, check=True)
    found = create(project, tmp_path / "box")
    run = found.new_run("diagnose")
    place = Location("train.py", 5)
    moving.remember(found, run)
    write_document(run / "run.json", RunRecord(run.name, "diagnose", COMMAND, "candidate", "mount", "finished", 0, 1.0, ""))
    write_document(run / "findings.json", replace(diagnosis(finding("input_cpu", place)), run=run.name))
    write_document(run / "summary.json", summary(loaders=(loader("train", place), loader("eval", Location("train.py", 4)))))
    (tmp_path / "one.diff").write_text(PATCH)
    made = optimizing.make(found, optimizing.from_patch(tmp_path / "one.diff"), COMMAND, Demands())
    found.save(replace(made, decision="accepted"))
    found.rest()
    return found


def test_the_call_that_the_run_named_is_edited(diagnosed):
    candidate = optimizing.propose(diagnosed, "dataloader_workers", "2", None, COMMAND)
    assert added(candidate) == ["train = DataLoader(a, num_workers=2)"]


def test_so_does_a_plan_that_is_made_again(diagnosed):
    (run,) = (diagnosed.directory / "runs").glob("diagnose-*")
    known = diagnosed.diagnosis(run.name)
    made, _ = optimizing.plan(diagnosed, *known, COMMAND)
    workers = [each for each in made.candidates if each.knob == "dataloader_workers"]
    assert workers
    assert {row[:13] for each in workers for row in added(each)} == {"train = DataL"}


def test_a_knob_that_was_accepted_is_refused_as_such(diagnosed):
    candidate = optimizing.propose(diagnosed, "dataloader_workers", "2", None, COMMAND)
    made = optimizing.make(diagnosed, candidate, COMMAND, Demands())
    diagnosed.save(replace(made, decision="accepted"))
    diagnosed.rest()
    (run,) = (diagnosed.directory / "runs").glob("diagnose-*")
    known = diagnosed.diagnosis(run.name)
    one_core = replace(known[1], threads=replace(known[1].threads, cpus=1.0))
    planned, _ = optimizing.plan(diagnosed, known[0], one_core, COMMAND)
    reasons = {each.knob: each.reason for each in planned.refused}
    assert reasons["dataloader_workers"].startswith(f"accepted already, as experiment {made.n}; beyond that: ")
    assert not any(reason.startswith("accepted") for knob, reason in reasons.items() if knob != "dataloader_workers")
