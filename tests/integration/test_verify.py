"""What a verdict compares and what it counts, with the measuring replaced by given answers; the command line for real."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from training_records import write

from trainflash import bench, sandbox
from trainflash.errors import ProgramFailed
from trainflash.schema import Check, Command, Fidelity, Runs, Speedup, SpeedVerdict, Start, write_document
from trainflash.workflow import checked, optimizing, owners_run, session, verifications, verifying
from trainflash.workflow.optimizing import Candidate
from trainflash.workflow.states import Asked
from trainflash.workflow.verifying import Demands

COMMAND = Command(("python", "train.py"))
SAME = Fidelity("same", (), 0.0, 0.0, 1e-3, 40, (), (), (Check("loss", True, "equal"),))
FASTER = SpeedVerdict("accept", Speedup(1.3, 1.2, 1.4, 4), "faster")


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
def asked(monkeypatch):
    """Every comparison that is asked for, with what was asked; `during` is done while it is measured."""
    seen: list[dict] = []

    def compare(box, baseline, candidate, directory, **options):
        asked = {"baseline": baseline, "candidate": candidate, "directory": directory, **options}
        seen.append(asked)
        for action in [each.pop("during") for each in seen if "during" in each]:
            action()
        starts = tuple(Start(n, "resident", 0.3, 0.3, "net", steps=240, spent_s=1.0) for n in range(1, 5))
        return Runs(baseline, starts, 5, unit=options["question"].unit), FASTER

    def check(box, baseline, candidate, place, **options):
        place.mkdir(parents=True)
        return SAME

    monkeypatch.setattr(verifying.fidelity, "check", check)
    monkeypatch.setattr(verifying.bench, "compare", compare)
    return seen


def change(place: int, **fields) -> Candidate:
    text = [f"line {n}\n" for n in range(1, 21)]
    around = range(max(1, place - 3), min(20, place + 3) + 1)
    body = "".join((f"-line {n}\n+LINE {n}\n" if n == place else f" {text[n - 1]}") for n in around)
    diff = f"--- a/train.py\n+++ b/train.py\n@@ -{around[0]},{len(around)} +{around[0]},{len(around)} @@\n{body}"
    return Candidate("patch", "p.diff", "host_code", None, "same", diff, "because", **fields)


def named(found, experiment, command: Command, demands: Demands) -> None:
    """An experiment that is judged as two commits."""
    verifications.verify(found, Asked(baseline=experiment.parent_commit, candidate=experiment.commit), command, demands)


def attempt(found, candidate: Candidate):
    return optimizing.try_candidate(found, candidate, COMMAND, Demands())


def test_variables_of_a_change_reach_the_candidate_alone(found, asked):
    attempt(found, change(3, environment={"OMP_NUM_THREADS": "4"}))
    assert (asked[-1]["baseline"].env, asked[-1]["candidate"].env) == ({}, {"OMP_NUM_THREADS": "4"})
    attempt(found, change(12, environment={"MALLOC_ARENA_MAX": "2"}))
    assert asked[-1]["baseline"].env == {"OMP_NUM_THREADS": "4"}, "what was accepted belongs to both"
    assert asked[-1]["candidate"].env == {"OMP_NUM_THREADS": "4", "MALLOC_ARENA_MAX": "2"}
    verifying.verify_accepted(found, COMMAND, Demands())
    assert (asked[-1]["baseline"].env, len(asked[-1]["candidate"].env)) == ({}, 2)
    verifying.verify_experiment(found, 1, Demands())
    assert (asked[-1]["baseline"].env, asked[-1]["candidate"].env) == ({}, {"OMP_NUM_THREADS": "4"})


def test_the_same_two_programs_share_their_starts_whatever_asks(found, asked):
    """The same change made again as another experiment, or named by its commits, is no second chance."""
    first = attempt(found, change(3))
    found.save(replace(first, decision="rejected"))
    second = attempt(found, change(3))
    named(found, second, COMMAND, Demands())
    named(found, second, COMMAND, Demands(resume=True))
    assert second.n == 2
    assert len({each["directory"] for each in asked}) == 1
    named(found, second, Command(("python", "train.py", "--long")), Demands())
    assert asked[-1]["directory"] != asked[0]["directory"]


def test_what_was_found_to_be_the_same_is_not_checked_again_for_more_starts(found, asked, monkeypatch):
    first = attempt(found, change(3))
    looked = []

    def again(*_, **__):
        looked.append(1)
        raise ProgramFailed("checked again")

    monkeypatch.setattr(verifying.fidelity, "check", again)
    assert verifying.verify_experiment(found, 1, Demands()).decision == "accepted"
    found.save(replace(first, decision="rejected"))
    assert attempt(found, change(3)).verdict.fidelity == first.verdict.fidelity, "of another experiment with these two programs, too"
    assert not looked
    monkeypatch.setattr(verifying.fidelity, "environment", lambda *_: {"packages": "other"})
    with pytest.raises(ProgramFailed, match="checked again"):
        verifying.verify_experiment(found, 2, Demands(resume=True))


def test_a_check_that_was_asked_otherwise_or_did_not_see_all_is_made_again(found, asked, monkeypatch):
    first = attempt(found, change(3))

    def again(*_, **__):
        raise ProgramFailed("checked again")

    monkeypatch.setattr(verifying.fidelity, "check", again)
    (kept,) = (found.directory / "pairs").glob("*/fidelity.json")
    write_document(kept, replace(first.verdict.fidelity, not_seen=("checkpoint",)))
    assert verifying.verify_experiment(found, 1, Demands(resume=True)).decision == "accepted"
    with pytest.raises(ProgramFailed, match="checked again"):
        verifying.verify_experiment(found, 1, Demands(budget_s=3600.0))
    with pytest.raises(ProgramFailed, match="checked again"):
        verifying.verify_experiment(found, 1, Demands(resume=True, tolerance=1e-4))


def test_what_was_not_seen_is_looked_for_again_only_with_more_time(found, asked, monkeypatch):
    first = attempt(found, change(3))
    (kept,) = (found.directory / "pairs").glob("*/fidelity.json")
    write_document(kept, replace(first.verdict.fidelity, not_seen=("schedule",)))
    monkeypatch.setattr(verifying.fidelity, "check", lambda *_, **__: pytest.fail("another look of the same length"))
    assert verifying.verify_experiment(found, 1, Demands()).decision == "accepted"


ORDER = replace(
    SAME, verdict="changed", changed=("order",), agreements=("order",), reasons=("order: update 3: samples come in another order",)
)


@pytest.fixture
def ordered(found, asked, monkeypatch):
    """An experiment that needs an agreement to `order`; a check that is asked for again fails the test."""
    offers = []

    def check(box, baseline, candidate, place, **options):
        place.mkdir(parents=True)
        offers.append(options["offered"])
        return ORDER

    monkeypatch.setattr(verifying.fidelity, "check", check)
    tried = attempt(found, change(3))
    assert "order" in offers[0] and "numerics" not in offers[0]
    monkeypatch.setattr(verifying.fidelity, "check", lambda *_, **__: pytest.fail("checked again"))
    return tried


def test_what_needs_an_agreement_is_measured_and_agreed_to_without_another_check(found, asked, ordered):
    assert (ordered.decision, ordered.verdict.needs, ordered.verdict.speedup) == ("needs_agreement", ("order",), FASTER.speedup)
    assert not found.accepted() and found.tip() == found.sandbox.base_ref, "nothing is kept that nobody agreed to"
    assert verifying.verify_experiment(found, 1, Demands()).decision == "needs_agreement"
    agreed = verifying.verify_experiment(found, 1, Demands(allowed=frozenset({"order", "cadence"})))
    assert agreed.decision == "accepted" and found.tip() == agreed.commit
    assert len({str(each["directory"]) for each in asked}) == 1, "the starts that are there"
    assert [entry.decision for entry in found.log_entries() if entry.kind == "experiment"] == [
        "needs_agreement", "needs_agreement", "accepted",
    ]  # fmt: skip


def test_the_same_change_tried_again_with_the_agreement_is_checked_no_more(found, asked, ordered):
    again = optimizing.try_candidate(found, change(3), COMMAND, Demands(allowed=frozenset({"order"})))
    assert (again.n, again.decision) == (2, "accepted")


def test_what_is_not_to_be_asked_about_is_not_timed(found, asked, monkeypatch):
    monkeypatch.setattr(verifying.fidelity, "check", lambda *_, **options: replace(ORDER, agreements=()))
    tried = optimizing.try_candidate(found, change(3), COMMAND, Demands(ask=False))
    assert (tried.decision, tried.verdict.speedup, asked) == ("needs_agreement", None, [])
    seen = []
    monkeypatch.setattr(verifying.fidelity, "check", lambda *_, **options: seen.append(options["offered"]) or ORDER)
    assert verifying.verify_experiment(found, 1, Demands()).verdict.speedup == FASTER.speedup
    assert len(seen) == 1, "compared as if it were agreed to, which it was not before"


def test_an_agreement_covers_no_more_than_was_compared_under_it():
    order, none = frozenset({"order"}), frozenset()
    offered = frozenset({"order", "cadence", "batch"})
    assert checked.answers(ORDER, order, offered) and checked.answers(ORDER, none, offered)
    assert checked.answers(ORDER, frozenset({"order", "numerics", "batch"}), offered)
    assert not checked.answers(replace(ORDER, agreements=()), order, offered), "not compared as agreed to"
    assert not checked.answers(replace(ORDER, agreements=()), none, offered), "to be compared as if it were"
    assert checked.answers(replace(ORDER, agreements=()), none, none)
    assert not checked.answers(replace(SAME, agreements=("order",)), none, offered), "the same only under an agreement that was taken back"
    both = replace(ORDER, changed=("order", "updates"), agreements=("order",))
    assert checked.answers(both, none, offered) and checked.answers(both, order, offered), "refused, whatever is agreed to"


@pytest.mark.parametrize(("side", "folder"), [("baseline", "baseline/"), ("candidate", "worktree/")])
def test_a_checkout_that_is_edited_while_it_is_measured_settles_nothing(found, asked, monkeypatch, side, folder):
    forgotten = []
    monkeypatch.setattr(verifying.bench, "forget_after", lambda directory, count: forgotten.append(count))
    asked.append({"during": lambda: Path(found.sandbox.checkout(side), "train.py").write_text("other\n")})
    tried = attempt(found, change(3))
    assert tried.decision == "inconclusive"
    assert f"{folder} was edited while it was measured" in tried.verdict.reasons[0]
    assert forgotten == [0], "these starts must not count later"


def test_a_project_that_was_edited_since_is_said(found, asked):
    Path(found.sandbox.project, "train.py").write_text("line 1 is another now\n")
    tried = attempt(found, change(3))
    assert tried.decision == "accepted"
    assert "the project was edited since the sandbox was made (train.py)" in tried.verdict.reasons[-1]


def test_what_the_timing_found_stands_in_the_verdict(found, asked):
    judged = attempt(found, change(3)).verdict
    assert judged.unit == "step"
    assert judged.resources is not None
    assert "per step" in str(verifying.cost(Demands(), found)) or "each version 4 to 16 times" in verifying.cost(Demands(), found)


def recorded(folder: Path, name: str, samples: int, optimizers: int = 1, kind: str = "SGD") -> None:
    write(folder / name, samples, optimizers=optimizers, kind=kind)


def test_a_changed_batch_is_compared_by_its_samples(tmp_path):
    changed = replace(SAME, verdict="changed", changed=("batch",))
    assert owners_run.work(tmp_path, tmp_path / "kept", SAME) == ((1.0, 1.0), "step")
    work, why = owners_run.work(tmp_path, tmp_path / "kept", changed)
    assert work is None
    assert "could not be seen" in why
    held = tuple(Check(name, True, "") for name in ("updates", "loss", "gradient vectors", "step vectors"))
    assert owners_run.work(tmp_path, tmp_path / "kept", replace(changed, checks=held)) == ((1.0, 1.0), "step")
    assert owners_run.work(tmp_path, tmp_path / "kept", replace(changed, checks=held[:3]))[0] is None
    recorded(tmp_path / "kept", "baseline", 16)
    recorded(tmp_path, "candidate", 32)
    assert owners_run.work(tmp_path, tmp_path / "kept", changed) == ((16.0, 32.0), "sample")
    recorded(tmp_path, "candidate-2", 16)
    assert owners_run.work(tmp_path, tmp_path / "kept", changed) == ((1.0, 1.0), "step"), "the newest run counts"
    recorded(tmp_path, "candidate-3", 16, kind="Inline")
    assert owners_run.work(tmp_path, tmp_path / "kept", changed)[0] is None, "each backward counts as a step"
    recorded(tmp_path, "candidate-4", 16)
    shorter = replace(changed, changed=("shape",))
    assert owners_run.work(tmp_path, tmp_path / "kept", shorter) == ((1.0, 1.0), "sample")


def test_a_question_is_asked_alike_again_whatever_the_budget(tmp_path):
    """Another budget would time other steps, and other steps would begin anew: a way to ask until the answer pleases."""
    before = bench.Question(first_epoch=8, work=(16.0, 32.0), unit="sample")
    assert owners_run.know(None, 60.0, before).first_epoch == 8
    assert owners_run.know(None, 60.0).first_epoch == 0
    changed = replace(SAME, verdict="changed", changed=("batch",))
    assert owners_run.work(tmp_path, tmp_path, changed, before) == ((16.0, 32.0), "sample"), "the check was not made again"
    recorded(tmp_path, "baseline", 160)
    recorded(tmp_path, "candidate", 321)
    assert owners_run.work(tmp_path, tmp_path, changed, before)[0] == (16.0, 32.0)
    recorded(tmp_path, "candidate-2", 640)
    assert owners_run.work(tmp_path, tmp_path, changed, before)[0] == (160.0, 640.0)


def test_with_two_optimizers_a_step_is_an_update_of_both(tmp_path):
    recorded(tmp_path, "baseline", 16, optimizers=2)
    recorded(tmp_path, "candidate", 32, optimizers=2)
    changed = replace(SAME, verdict="changed", changed=("batch",))
    assert owners_run.work(tmp_path, tmp_path / "kept", changed)[0] == (32.0, 64.0)


def test_samples_that_nobody_counted_are_inconclusive(found, asked, monkeypatch):
    changed = replace(SAME, verdict="changed", changed=("batch",))
    monkeypatch.setattr(verifying.fidelity, "check", lambda *_, **__: changed)
    tried = optimizing.try_candidate(found, change(3), COMMAND, Demands(allowed=frozenset({"batch"})))
    assert tried.decision == "inconclusive"
    assert "how many samples a step has could not be seen" in tried.verdict.reasons[0]
    assert asked == []


@pytest.mark.full
def test_settings_are_those_of_the_sandboxs_project(user, tmp_path):
    """From another folder, with --sandbox: the project's own settings hold, not those that lie where the command is typed."""
    box = user.trainflash("sandbox", "create", ".", "--json").document["sandbox"]
    (user.project / "trainflash.toml").write_text("not_a_setting = 1\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    user.project = elsewhere
    for verb in (["verify"], ["optimize", "try", "dataloader_workers"], ["optimize", "plan"], ["diagnose"], ["tune"]):
        ran = user.trainflash(*verb, "--sandbox", box, "--", sys.executable, "train.py")
        assert ran.code == 2, ran.err
        assert "not_a_setting" in ran.err


FASTER_PARSER = ("def parse(index):", "import functools\n\n\n@functools.lru_cache(None)\ndef parse(index):")


@pytest.fixture
def patch(user):
    text = (user.project / "train.py").read_text()
    (user.project / "train.py").write_text(text.replace(*FASTER_PARSER))
    diff = user.git("diff")
    user.git("checkout", "--", "train.py")
    path = user.project.parent / "faster.diff"
    path.write_text(diff)
    return path


@pytest.mark.full
@pytest.mark.timeout(2400)
def test_ctrl_c_keeps_what_was_measured_and_resume_goes_on(user, patch):
    """Interrupted in its third start, refused under another setting, resumed: the two starts count."""
    assert user.trainflash("sandbox", "create", ".").code == 0
    tried = user.command("optimize", "try", "--patch", str(patch), "--budget", "10m", "--", sys.executable, "train.py")
    running = subprocess.Popen(tried, cwd=user.project, env=user.environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    said = ""
    for line in running.stderr:
        said += line
        if "start 3" in line:
            break
    running.send_signal(signal.SIGINT)
    said += running.communicate(timeout=120)[1]
    assert running.returncode == 130, said
    assert "src/trainflash/" not in said, "a traceback of ours"
    command = ["verify", "--experiment", "1", "--resume", "--budget", "8m", "--json"]
    user.environment["OMP_NUM_THREADS"] = "2"
    refused = user.trainflash(*command)
    assert refused.code == 2, refused.err
    assert "OMP_NUM_THREADS was 1, is 2" in refused.err
    user.environment["OMP_NUM_THREADS"] = "1"
    went_on = user.trainflash(*command, timeout=900)
    assert went_on.code in {0, 3}, went_on.err
    assert any("measured before and count on" in reason for reason in went_on.document["reasons"]), went_on.document["reasons"]
    began = time.monotonic()
    again = user.trainflash(*command, timeout=900)
    assert again.document["verdict"] == went_on.document["verdict"]
    if went_on.code == 0:
        assert time.monotonic() - began < 60, "an answer that is there is not measured again"


def test_the_bench_is_asked_for_what_it_needs(found, asked, monkeypatch):
    known = owners_run.Known(
        first_epoch=8, steps=100, said="timed from step 9 on, after the first epoch", breaks={"checkpoints": (None, 2.0)}
    )
    monkeypatch.setattr(verifying.owners_run, "know", lambda *_: known)
    judged = attempt(found, change(3)).verdict
    assert asked[-1]["question"].first_epoch == 8
    assert asked[-1]["question"].far, "steps are looked at along the whole run"
    assert asked[-1]["question"].run_steps == 108
    assert any("timed from step 9 on" in reason for reason in judged.reasons)
    assert known.costs() == bench.OwnersRun(100, {"checkpoints": (None, 2.0)}, 8)
    assert sandbox.drifted(found.sandbox) == ()
