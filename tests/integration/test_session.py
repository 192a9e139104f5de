"""The chain of experiments as files and commits, with what measures replaced by given answers."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from trainflash import sandbox
from trainflash.errors import UsageError
from trainflash.fidelity import changed_lines, reuse
from trainflash.gate.machines import checkout
from trainflash.schema import Brief, Check, Command, Fidelity, Plan, Runs, Speedup, SpeedVerdict, write_document
from trainflash.view import listing
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
        return Runs(baseline, (), 5), answers.pop(0) if len(answers) > 1 else answers[0]

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
    verifying.verify_accepted(found, COMMAND, Demands())
    assert approving.propose(found, None).approvable
    measures[:] = [SLOWER]
    verifying.verify_accepted(found, COMMAND, Demands())
    assert [experiment.n for experiment in found.accepted()] == [1], "only what was proven against the owner's state stays"
    assert [entry.decision for entry in found.log_entries() if entry.kind == "combination"] == ["accept", "reject"]


def test_one_accepted_experiment_is_judged_anew_by_verify(found, measures):
    attempt(found, 3)
    measures[:] = [SLOWER]
    assert verifying.verify_accepted(found, Command(("python", "other.py")), Demands()).verdict == "reject"
    assert found.accepted() == ()
    assert found.experiment(1).command.argv == ("python", "other.py")


def test_below_a_project_the_error_names_the_project(found):
    below = Path(found.sandbox.project) / "src"
    below.mkdir()
    with pytest.raises(UsageError) as caught:
        session.existing_session(below)
    assert caught.value.mend == f"run the command in {found.sandbox.project}, which has one"
    with pytest.raises(UsageError) as caught:
        session.existing_session(below.parent.parent)
    assert "sandbox create" in caught.value.mend


def test_what_was_agreed_to_stays_agreed_to_when_it_is_judged_again(found, measures, monkeypatch):
    def sees(*kinds):
        changed = replace(SAME, verdict="changed", changed=kinds)
        monkeypatch.setattr(verifying.fidelity, "check", lambda *_, **__: changed)

    sees("order")
    assert attempt(found, 3).decision == "needs_agreement"
    agreed = Demands(allowed=frozenset({"order"}))
    assert [optimizing.try_candidate(found, patch(place), COMMAND, agreed).decision for place in (3, 8)] == ["accepted", "accepted"]
    assert verifying.verify_accepted(found, COMMAND, Demands()).verdict == "accept"
    assert verifying.verify_experiment(found, 2, Demands()).decision == "accepted"
    sees("order", "batch")
    assert verifying.verify_accepted(found, COMMAND, Demands()).needs == ("batch",), "nobody agreed to that"


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
    for path in (found.report_path, found.log_path, found.experiment_dir(1) / "verdict.json", found.experiment_dir(1) / "experiment.json"):
        assert TOKEN not in path.read_text(), path
    assert "train.py" in found.report_path.read_text()


def test_a_report_can_be_shown_when_the_owner_edited_the_same_place(found, measures):
    attempt(found, 3)
    Path(found.sandbox.project, "train.py").write_text("all new\n")
    shown = showing.view(found)
    assert shown.approve_command is None
    assert "cannot be written back now" in shown.stopped_because
    json.dumps(shown.stopped_because)


GOOD = "--- a/train.py\n+++ b/train.py\n@@ -1,2 +1,2 @@\n-line 1\n+LINE 1\n line 2\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"this is no diff\n", "is no unified diff"),
        (b"diff --git a/x.bin b/x.bin\nnew file mode 100644\nGIT binary patch\nliteral 3\nKcmZ\n", "binary patch"),
        (b"diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary patch"),
        (b"--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-line 1\n+LINE\0 1\n", "binary patch"),
        (GOOD.replace("line 1", "line one").encode(), "does not apply"),
        (GOOD.replace("train.py", "../outside.py").encode(), "does not apply"),
        (GOOD.replace("train.py", ".git/config").encode(), "does not apply|outside the project"),
        (GOOD.replace("a/train.py", "/etc/passwd").replace("b/train.py", "/etc/passwd").encode(), "absolute path"),
        (b"--- /dev/null\n+++ b/sub/.git/hooks/post-checkout\n@@ -0,0 +1 @@\n+rm -rf /\n", "does not apply|outside the project"),
        (
            b"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+../../x\n\\ No newline at end of file\n",
            "link",
        ),
    ],
)
def test_a_patch_that_cannot_be_tried_is_one_clear_line(found, measures, tmp_path, text, says):
    path = tmp_path / "assistant.diff"
    path.write_bytes(text)
    with pytest.raises(UsageError, match=says) as refused:
        optimizing.try_candidate(found, optimizing.from_patch(path), COMMAND, Demands())
    assert refused.value.exit_code == 2 and "\n" not in refused.value.message and refused.value.mend
    assert found.experiments() == () and sandbox.head(found.sandbox) == found.sandbox.base_ref


def test_a_patch_is_an_experiment_like_any_other(found, measures, tmp_path):
    path = tmp_path / "assistant.diff"
    path.write_text(GOOD)
    made = optimizing.try_candidate(found, optimizing.from_patch(path, "one pass", "logging"), COMMAND, Demands())
    assert (made.decision, made.knob, made.finding, made.why) == ("accepted", "patch", "logging", "one pass")
    with pytest.raises(UsageError, match="no finding 'slow'"):
        optimizing.from_patch(path, finding="slow")
    with pytest.raises(UsageError, match="No such file"):
        optimizing.from_patch(tmp_path / "none.diff")
    with pytest.raises(UsageError, match=r"Is a directory|is empty"):
        optimizing.from_patch(tmp_path)


def test_the_log_holds_what_a_reader_needs(found, measures):
    attempt(found, 3)
    found.note("the parser was it", 1)
    entries = found.log_entries()
    tried, said = entries[-2:]
    assert (tried.experiment, tried.parent, tried.knob, tried.value, tried.finding) == (1, None, "patch", "p.diff", "host_code")
    assert tried.diff_digest == found.experiment(1).diff_digest and TOKEN not in tried.command
    assert tried.environment, "on which machine"
    assert (tried.verdict, tried.decision, tried.by, tried.fidelity) == ("accept", "accepted", "trainflash", "same")
    assert tried.speedup.ci_low == 1.2 and tried.reasons
    assert (said.kind, said.experiment, said.what, said.by) == ("note", 1, "the parser was it", "owner or assistant")
    with pytest.raises(UsageError, match="no experiment 7"):
        found.note("which?", 7)
    with pytest.raises(UsageError, match="empty"):
        found.note("  ")


def test_an_entry_that_a_kill_left_out_is_added_once(found, measures):
    attempt(found, 3)
    lines = found.log_path.read_bytes()
    found.log_path.write_bytes(lines[: lines.rindex(b"---\n")])
    assert not [entry for entry in found.log_entries() if entry.kind == "experiment"]
    verifying.complete_log(found)
    verifying.complete_log(found)
    [entry] = [entry for entry in found.log_entries() if entry.kind == "experiment"]
    assert (entry.experiment, entry.decision, entry.speedup.mean) == (1, "accepted", 1.3)


def test_a_sandbox_that_is_older_than_the_project_says_so(found):
    said = []
    project = Path(found.sandbox.project)
    session.open_session(project, on_progress=lambda label, done, total: said.append(label))
    assert said == []
    (project / "train.py").write_text("another\n")
    (project / "new.sh").write_text("echo\n")
    again, new = session.open_session(project, on_progress=lambda label, done, total: said.append(label))
    assert not new and again.sandbox == found.sandbox
    assert len(said) == 1 and "train.py" in said[0] and "new.sh" in said[0] and "sandbox discard" in said[0]
    session.open_session(project, Path(found.sandbox.directory), on_progress=lambda label, done, total: said.append(label))
    assert len(said) == 1, "who names a sandbox knows it"


def test_a_command_whose_secrets_are_gone_is_not_run_with_marks_in_their_place(found, measures):
    made = attempt(found, 3)
    (found.directory / "secrets.json").unlink()
    with pytest.raises(UsageError, match="secrets of this command are gone"):
        verifying.verify_experiment(found, made.n, Demands())
    again = verifying.verify_experiment(found, made.n, Demands(), COMMAND)
    assert again.command.argv == COMMAND.argv


HOOKS = (
    "applypatch-msg", "commit-msg", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-rewrite",
    "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-rebase", "prepare-commit-msg", "reference-transaction", "watch",
)  # fmt: skip


def test_no_hook_of_the_owner_runs_in_any_verb(found, measures, tmp_path):
    project, ran = Path(found.sandbox.project), tmp_path / "ran"
    found.discard(everything=True)
    for name in HOOKS:
        hook = project / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\necho {name} >> '{ran}'\n")
        hook.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", ".git/hooks/watch"], cwd=project, check=True)
    os.utime(project / "train.py", ns=(0, 0))  # what makes a look refresh the index, and so call post-index-change
    index = (project / ".git" / "index").read_bytes()

    again = session.create(project)
    sandbox.drifted(again.sandbox)
    listing.read(again.sandbox)
    checkout.commit_of(project)
    assert checkout.is_dirty(project) is False
    made = attempt(again, 3)
    changed_lines.find(again.sandbox, made.command, whole=True)
    reuse.key_of(again.sandbox, "baseline", made.command)
    showing.view(again)
    for branch in ("faster", None):
        digest = approving.propose(again, 1, branch).digest
        approving.write_back(again, 1, approved_digest=digest, how="digest", branch=branch)
        approving.undo(again)
    again.discard(everything=True)

    assert not ran.exists(), ran.read_text()
    assert (project / ".git" / "index").read_bytes() == index
    subprocess.run(["git", "status"], cwd=project, check=True, capture_output=True)
    assert "post-index-change" in ran.read_text(), "the hooks would have run"
