"""Verbs with on=slurm: what the job types is what the command line understands, and the job's document is the answer. No cluster."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("mcp.server.mcpserver")

from trainflash.cli import cli
from trainflash.errors import Inconclusive
from trainflash.mcp_server.roots import Roots
from trainflash.mcp_server.verbs import answer
from trainflash.mcp_server.verbs.arguments import reserved_file
from trainflash.workflow import session, submitting

TRAIN = ["python", "train.py", "--on", "x"]
DOCUMENT = {"schema": "x.v1", "status": "ok"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text("print(1)\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=o", "-c", "user.email=o@localhost", *words], cwd=root, check=True)
    session.create(root)
    return root


@pytest.fixture
def submitted(monkeypatch):
    """What would have been submitted."""
    seen: dict = {}

    def submit(typed, settings, given, **more):
        seen.update(more, typed=typed, settings=settings, given=given)
        patches = [word.partition("=")[2] for word in typed.words if word.startswith("--patch=")]
        seen["patch"] = [Path(path).read_text() for path in patches]
        more["relay"]("diagnose: 3/40\n\n")
        return submitting.Came(0, json.dumps(DOCUMENT) + "\n")

    monkeypatch.setattr(submitting, "submit_and_wait", submit)
    return seen


def understood(typed: submitting.Typed) -> dict:
    """The parameters that the command line makes of a job's words."""
    at, words = cli, [*typed.words, *typed.first, *typed.owners]
    while words[0] in getattr(at, "commands", {}):
        at = at.commands[words.pop(0)]
    return at.make_context("job", words).params


@pytest.mark.parametrize(
    ("verb", "arguments", "otherwise"),
    [
        ("diagnose", {"steps": 40, "warmup": 0, "sample_hz": 0, "ceilings": True}, {}),
        ("diagnose", {}, {"steps": None, "ceilings": False}),
        ("optimize_try", {"knob": "pin_memory=1", "at": "train.py:1", "budget": "5m"}, {"budget": 300}),
        ("optimize_auto", {"budget": "1h", "allow": "order,numerics"}, {"budget": 3600}),
        ("verify", {"experiment": 2, "tolerance": 0.5, "resume": True}, {"convergence": False}),
        ("verify", {"metric": "--in-place=([0-9.]+)", "convergence": True, "seeds": 3}, {}),
    ],
)
def test_the_job_types_what_was_asked(project, submitted, verb, arguments, otherwise):
    """`otherwise`: what the command line holds in another form."""
    said: list[str] = []
    options = {"partition": "gpu", "time": "2h", "nodes": "2", "exclusive": ""}
    given = {"command": TRAIN, "on": "slurm", "slurm": options, **arguments}
    assert answer(verb, given, Roots((project,)), lambda label, *_: said.append(label)) == DOCUMENT
    params = understood(submitted["typed"])
    box = session.existing_session(project).sandbox.directory
    expected = {**arguments, **otherwise}
    assert {name: params[name] for name in expected} == expected
    assert (params["on"], params["as_json"], list(params["cmd"]), str(params["sandbox"])) == ("here", True, TRAIN, box)
    assert (submitted["cwd"], str(submitted["sandbox"]), said) == (project, box, ["diagnose: 3/40"])
    wanted = submitted["given"]
    assert (wanted["partition"], wanted["time_s"], wanted["constraint"], wanted["wait_s"]) == ("gpu", 7200, None, None)
    assert wanted["options"] == ["nodes=2", "exclusive"]


def test_a_patch_lies_where_the_nodes_see_it_until_the_job_is_over(project, submitted):
    diff = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-print(1)\n+print(2)\n"
    given = {"command": TRAIN, "on": "slurm", "patch": diff, "why": "--in-place"}
    assert answer("optimize_try", given, Roots((project,)), lambda *_: None) == DOCUMENT
    params = understood(submitted["typed"])
    assert (submitted["patch"], params["why"], params["knob"]) == ([diff], "--in-place", None)
    assert not params["patch"].exists() and params["patch"].parent == session.existing_session(project).directory


def test_the_project_s_settings_submit_too_and_here_overrules_them(project, submitted):
    (project / "trainflash.toml").write_text('on = "slurm"\n[slurm]\npartition = "gpu"\n')
    assert answer("diagnose", {"command": TRAIN}, Roots((project,)), lambda *_: None) == DOCUMENT
    assert submitted["settings"] == {"partition": "gpu"}
    submitted.clear()
    refused = answer("optimize_try", {"command": TRAIN, "knob": "pin_memory", "on": "here"}, Roots((project,)), lambda *_: None)
    assert "no training seen" in refused["error"]["message"] and not submitted, "it was run here, for a diagnosis"


@pytest.mark.parametrize(
    ("verb", "arguments", "said"),
    [
        ("diagnose", {"slurm": {"nodes": "2"}}, "slurm says how a job is submitted"),
        ("optimize_try", {"knob": "--in-place", "on": "slurm"}, "there is no knob --in-place"),
        ("diagnose", {"on": "slurm", "slurm": {"time": "soon"}}, "is no duration"),
    ],
)
def test_what_makes_no_job_is_refused(project, submitted, verb, arguments, said):
    refused = answer(verb, {"command": TRAIN, **arguments}, Roots((project,)), lambda *_: None)
    assert said in refused["error"]["message"] and refused["error"]["mend"] and not submitted


def test_a_job_that_came_to_nothing_is_an_error_with_its_mend(project, monkeypatch):
    def fail(*_, **__):
        raise Inconclusive("job 7 did not start within 1 h; it was cancelled", "another partition")

    monkeypatch.setattr(submitting, "submit_and_wait", fail)
    told = answer("diagnose", {"command": TRAIN, "on": "slurm"}, Roots((project,)), lambda *_: None)
    assert (told["status"], told["error"]["mend"]) == ("inconclusive", "another partition")
    monkeypatch.setattr(submitting, "submit_and_wait", lambda *_, **__: submitting.Came(9, "Killed\n"))
    told = answer("diagnose", {"command": TRAIN, "on": "slurm"}, Roots((project,)), lambda *_: None)
    assert "exit code 9 and without an answer" in told["error"]["message"]


def test_a_file_that_is_reserved_stays_only_where_something_was_written(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with reserved_file("gate", "metrics", ".json") as written:
        written.write_text("{}")
    with pytest.raises(ValueError, match="no"), reserved_file("gate", "metrics", ".json") as empty:
        raise ValueError("no")
    assert written.exists() and not empty.exists()
