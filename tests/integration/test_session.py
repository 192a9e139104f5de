"""The chain of experiments as files and commits, with what measures replaced by given answers."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from trainflash import sandbox
from trainflash.errors import UsageError
from trainflash.schema import Brief, Check, Command, Fidelity, Plan, Speedup, SpeedVerdict, write_document
from trainflash.workflow import approving, optimizing, session, showing, verifying
from trainflash.workflow.verifying import Demands

TOKEN = "hf_" + "a1B2" * 10
COMMAND = Command(("python", "train.py", "--token", TOKEN))
SAME = Fidelity("same", (), 0.0, 0.0, 1e-3, 40, (), (), (Check("loss", True, "equal"),))
FASTER = SpeedVerdict("accept", Speedup(1.3, 1.2, 1.4, 4), "faster")
SLOWER = replace(FASTER, decision="reject", reason="slower")


@pytest.fixture
def found(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=o", "-c", "user.email=o@localhost", *words], cwd=project, check=True)
    return session.create(project)


@pytest.fixture
def measures(monkeypatch):
    """What the next comparisons find; the last answer holds for all that follow."""
    answers = [FASTER]

    def compare(box, baseline, candidate, directory, **options):
        directory.mkdir(exist_ok=True)
        assert options["question"].identity and TOKEN not in options["shown"].argv
        return None, answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(verifying.fidelity, "check", lambda *_, **__: SAME)
    monkeypatch.setattr(verifying.bench, "compare", compare)
    return answers


def patch(place: int) -> optimizing.Candidate:
    text = [f"line {n}\n" for n in range(1, 21)]
    around = range(max(1, place - 3), min(20, place + 3) + 1)
    body = "".join((f"-line {n}\n+LINE {n}\n" if n == place else f" {text[n - 1]}") for n in around)
    diff = f"--- a/train.py\n+++ b/train.py\n@@ -{around[0]},{len(around)} +{around[0]},{len(around)} @@\n{body}"
    return optimizing.Candidate("patch", "p.diff", "host_code", None, "same", diff, "because")


def attempt(found, place: int):
    return optimizing.try_candidate(found, patch(place), COMMAND, Demands())


def test_an_experiment_beside_an_accepted_one_cannot_take_its_place(found, measures):
    measures[:] = [SLOWER, FASTER]
    assert [attempt(found, 3).decision, attempt(found, 8).decision] == ["rejected", "accepted"]
    with pytest.raises(UsageError, match="experiment 2 was accepted where experiment 1 was made"):
        verifying.verify_experiment(found, 1, Demands())
    assert [one.n for one in found.accepted()] == [2]


def test_only_what_builds_on_the_accepted_state_is_written_back(found, measures):
    attempt(found, 3), attempt(found, 8)
    measures[:] = [SLOWER]
    verifying.verify_experiment(found, 1, Demands())
    assert found.accepted() == ()
    with pytest.raises(UsageError, match="no longer accepted"):
        approving.chosen(found, 2)


def test_two_need_a_verdict_together_and_a_newer_one_counts(found, measures):
    attempt(found, 3), attempt(found, 8)
    assert not approving.propose(found, None).approvable
    assert approving.propose(found, 1).approvable
    verifying.verify_commits(found, None, None, COMMAND, Demands())
    assert approving.propose(found, None).approvable
    measures[:] = [SLOWER]
    verifying.verify_commits(found, None, None, COMMAND, Demands())
    assert [experiment.n for experiment in found.accepted()] == [1], "only what was proven against the owner's state stays"
    assert [entry.decision for entry in found.log_entries() if entry.kind == "combination"] == ["accept", "reject"]


def test_one_accepted_experiment_is_judged_anew_by_verify(found, measures):
    attempt(found, 3)
    measures[:] = [SLOWER]
    assert verifying.verify_commits(found, None, None, Command(("python", "other.py")), Demands()).verdict == "reject"
    assert found.accepted() == ()
    assert found.experiment(1).command.argv == ("python", "other.py")


def test_an_edit_while_measuring_is_never_accepted_and_never_lost(found, measures, monkeypatch):
    def edits(*_, **__):
        Path(found.sandbox.worktree, "train.py").write_bytes(b"other \xff\n")
        return SAME

    monkeypatch.setattr(verifying.fidelity, "check", edits)
    assert attempt(found, 3).decision == "inconclusive"
    assert Path(found.sandbox.worktree, "train.py").read_text().startswith("line 1\n")
    [aside] = found.directory.glob("set-aside-*.diff")
    assert b"+other \xff\n" in aside.read_bytes()


def test_what_was_interrupted_is_mended_and_tried_again(found, measures, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(verifying, "verify_experiment", interrupted)
        with pytest.raises(KeyboardInterrupt):
            attempt(found, 3)
    assert found.experiment(1).decision == "pending"
    assert sandbox.head(found.sandbox) != found.tip()
    assert attempt(found, 8).parent_commit == found.sandbox.base_ref
    assert sandbox.head(found.sandbox) == found.tip()


def test_a_token_reaches_no_report(found, measures):
    attempt(found, 3)
    brief = Brief("host_code", None, "slow", f'login(token="{TOKEN}")', (), None, "same", "verify")
    write_document(found.plan_path, Plan("diagnose-001", "2025-01-01T00:00:00Z", (), (), (brief,)))
    showing.write_report(found, showing.view(found))
    for path in (found.report_path, found.log_path, found.experiment_dir(1) / "verdict.json"):
        assert TOKEN not in path.read_text(), path
    assert "train.py" in found.report_path.read_text()


def test_a_report_can_be_shown_when_the_owner_edited_the_same_place(found, measures):
    attempt(found, 3)
    Path(found.sandbox.project, "train.py").write_text("all new\n")
    shown = showing.view(found)
    assert shown.approve_command is None
    assert "cannot be written back now" in shown.stopped_because
    json.dumps(shown.stopped_because)
