"""`auto` as a search: its order, its bounds, its end, and that a kill at any moment costs nothing that was finished."""

from __future__ import annotations

import html
import os
import re
import shlex
import signal
import subprocess
import sys
import traceback
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from search_stage import COMMAND, Stage, candidate, die_after, project, read

from trainflash import report, sandbox
from trainflash.errors import UsageError
from trainflash.schema import (
    Candidate,
    Command,
    Plan,
    Runs,
    Speedup,
    SpeedVerdict,
    Start,
    WordChange,
    read_document,
    write_document,
)
from trainflash.schema.searches import Search
from trainflash.workflow import (
    approving,
    choosing,
    diagnosing,
    moving,
    optimizing,
    ordering,
    rounds,
    searching,
    session,
    showing,
    verifying,
)
from trainflash.workflow.verifying import Demands

BUDGET_S = 3600.0


SMALL = ("cache", "fused")


@pytest.fixture
def found(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return session.create(project(tmp_path / "project", SMALL))


@pytest.fixture
def stage(tmp_path, monkeypatch):
    return Stage(monkeypatch, tmp_path / "measured")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A whole search that has come to its end: the session, the stage, and what it came to."""
    place = tmp_path_factory.mktemp("searched")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        made = session.create(project(place / "project"))
        stage = Stage(patch, place / "measured")
        yield made, stage, search(made)


def search(found, *, allowed=(), budget_s=BUDGET_S, **options):
    return searching.auto(found, COMMAND, Demands(budget_s=budget_s, allowed=frozenset(allowed)), budget_s=budget_s, **options)


def test_the_whole_search(searched):
    found, stage, came_to = searched
    tried = [(one.knob, one.value, one.decision) for one in came_to.experiments]
    assert tried[0] == ("cache", "1", "accepted"), "the largest measured ceiling first"
    workers = [(value, decision) for knob, value, decision in tried if knob == "workers"]
    assert workers == [("1", "accepted"), ("2", "accepted"), ("4", "rejected")], "on while it pays, stop at the first that does not"
    assert ("order", "1", "accepted") not in tried and all(knob != "order" for knob, _, _ in tried)
    assert ("crash", "1", "rejected") in tried and ("noisy", "1", "inconclusive") in tried, "the search goes on after them"
    assert (came_to.ending, "order (order)" in came_to.stopped_because) == ("needs a person", True)
    assert read(found.sandbox.worktree) | {"cache": "1", "workers": "2"} == read(found.sandbox.worktree)
    assert came_to.combined.verdict == "accept" and stage.measured[-1] == "together="
    [combination] = [entry for entry in found.log_entries() if entry.kind == "combination"]
    assert combination.decision == "accept"
    assert {each.ceiling.how for each in came_to.before.findings} == {"measured"}, "where two costs are near"
    assert [one.parent for one in came_to.experiments if one.decision == "accepted"] == [None, 1, 2]


def test_what_is_left_stands_in_the_plan_with_its_reason(searched):
    found, _, came_to = searched
    left = found.plan()
    assert any("paid no more on top of 2" in each.reason for each in left.refused)
    assert [each.knob for each in left.candidates] == ["order"], "what needs agreement stays in the plan"
    assert {brief.finding for brief in left.briefs} >= {"optimizer", "collate"}, "whose knobs are all tried"
    assert any("out of memory" in line for brief in left.briefs for line in brief.tried)
    assert came_to.briefs == left.briefs


def test_the_report_shows_as_after_what_was_diagnosed_with_every_accepted_change(searched, found, stage):
    whole = searched[0]
    shown = showing.view(whole)
    assert moving.is_of(whole, shown.after.run, whole.tip()) and shown.before.run != shown.after.run
    diagnosing.diagnose(found, COMMAND)
    optimizing.try_candidate(found, candidate(Path(found.sandbox.worktree), "cache", "1"), COMMAND, Demands())
    assert found.accepted() and showing.view(found).after is None, "nobody has looked at it since"
    diagnosing.diagnose(found, replace(COMMAND, argv=(*COMMAND.argv, "--other")))
    assert showing.view(found).after is None, "another program"
    made, _ = diagnosing.diagnose(found, COMMAND)
    assert showing.view(found).after == made


def test_a_second_search_repeats_nothing_that_was_decided(searched):
    found, stage, first = searched
    before, known = Counter(stage.measured), len(found.experiments())
    second = search(found)
    assert [one.knob for one in second.experiments] == ["noisy"], "what noise left open deserves another try"
    assert Counter(stage.measured) - before == Counter(["noisy=1"])
    assert second.combined == first.combined and len(found.experiments()) == known + 1


def test_what_the_owner_agreed_to_is_tried(searched):
    found, _, _ = searched
    with_order = search(found, allowed=["order"])
    assert with_order.experiments[0].knob == "order" and with_order.experiments[0].decision == "accepted"


def test_what_rounds_otherwise_is_said_to_need_an_agreement(found, stage):
    stage.rounds = {"fused"}
    came_to = search(found)
    assert [(one.knob, one.decision) for one in came_to.experiments] == [("cache", "accepted"), ("fused", "rejected")]
    assert (came_to.ending, "fused (numerics)" in came_to.stopped_because) == ("needs a person", True)
    with_it = search(found, allowed=["numerics"])
    assert stage.measured[-1] == "fused=1" and "numerics" not in with_it.stopped_because


def test_what_turns_out_to_need_an_agreement_takes_no_starts_from_what_needs_none(found, stage):
    stage.reorders, stage.pays = {"cache"}, {("cache", "1"), ("fused", "1")}
    came_to = search(found)
    assert stage.measured == ["fused=1"]
    by_name = {one.knob: one for one in came_to.experiments}
    assert (by_name["fused"].decision, by_name["cache"].decision) == ("accepted", "needs_agreement")
    assert "cache (order: to be tried again, on top of what was accepted since)" in came_to.stopped_because


def test_a_search_ends_with_what_an_agreement_would_bring_and_the_command_that_agrees(found, stage):
    stage.reorders = {"cache"}
    came_to = search(found)
    assert stage.measured == ["fused=1", "cache=1"], "timed after all others"
    (asked,) = (one for one in came_to.experiments if one.decision == "needs_agreement")
    assert asked.verdict.gain == pytest.approx(1.3)
    assert "cache (order; 1.30 times as fast: trainflash verify --experiment 1 --accept-change order)" in came_to.stopped_because
    with_it = search(found, allowed=["order"])
    assert [one.decision for one in with_it.experiments if one.knob == "cache"] == ["accepted"]


def test_by_hand_it_may_be_tried_again(searched):
    found, _, _ = searched
    again = next(one for one in found.experiments() if one.knob == "fused")
    made = optimizing.try_candidate(found, _same(found, again), COMMAND, Demands())
    assert made.n == found.experiments()[-1].n and made.decision == "rejected"


def test_what_was_kept_already_says_so(searched):
    found, _, _ = searched
    kept = found.accepted()[0]
    with pytest.raises(UsageError, match=f"kept already, as experiment {kept.n}"):
        optimizing.try_candidate(found, _same(found, kept), COMMAND, Demands())


def _same(found, one):
    return optimizing.Candidate(one.knob, one.value, one.finding, one.location, one.risk, optimizing.diff_of(found, one), "asked for")


def test_a_healthy_program_is_left_alone(found, stage):
    stage.healthy = True
    came_to = search(found)
    assert (came_to.ending, came_to.experiments, came_to.combined, stage.measured) == ("healthy", (), None, [])


def test_an_empty_budget_is_one_clear_line(found, stage):
    with pytest.raises(UsageError, match=r"a budget of 5 s is too small for the loop"):
        search(found, budget_s=5.0)
    assert not found.search_path.exists()


def test_the_budget_ends_it_with_time_for_all_together(found, stage):
    """A clock on which every look costs: the search stops, says so, and what was accepted is verified together."""
    now = [0.0]

    def clock() -> float:
        now[0] += 45.0
        return now[0]

    came_to = search(found, budget_s=200.0, clock=clock)
    assert came_to.ending == "budget" and "1 more could be tried" in came_to.stopped_because
    assert len(came_to.experiments) == 1 and came_to.combined.verdict == "accept"


def test_what_a_start_takes_decides_whether_another_experiment_is_begun(found, stage):
    """Half a verdict on each of two candidates is none on any."""
    slow = Start(1, "resident", None, None, "wall", reason="too few steps", spent_s=100.0)
    write_document(found.directory / "pairs" / "x" / "runs.json", Runs(COMMAND, (slow,), 5))
    assert ordering.price(found).least_s == 430.0
    came_to = search(found, budget_s=300.0)
    assert (came_to.ending, came_to.experiments, stage.measured) == ("budget", (), [])


def test_a_program_that_keeps_failing_needs_a_person(found, stage):
    stage.failing = True
    came_to = search(found)
    assert came_to.ending == "needs a person" and came_to.stopped_because.startswith(
        "2 experiments in a row could not be judged: the baseline failed"
    )
    assert {one.decision for one in came_to.experiments} == {"inconclusive"}


def test_a_plan_that_does_not_apply_is_a_fault_and_named(found, stage, monkeypatch):
    real = stage.plan

    def stale(*arguments, **options):
        offered, _, _ = real(*arguments, **options)
        return tuple(replace(each, diff=each.diff.replace("-cache = 0", "-cache = 5")) for each in offered), (), ()

    monkeypatch.setattr(optimizing.knobs, "plan", stale)
    with pytest.raises(UsageError, match=r"cache = 1: the diff does not apply"):
        search(found)


def test_any_other_fault_surfaces(found, stage, monkeypatch):
    def broken(*_, **__):
        raise UsageError("no space left on the disk", "make room")

    monkeypatch.setattr(verifying.fidelity, "check", broken)
    with pytest.raises(UsageError, match="no space left"):
        search(found)
    assert found.experiment(1).decision == "pending"


def test_ceilings_are_measured_where_they_decide(found, stage):
    known, _ = stage.diagnose(found, COMMAND)
    cache, fused = known.findings
    assert not searching.contested(known), "fused cannot overtake cache"
    near = replace(fused, ceiling=replace(fused.ceiling, speedup=2.0))
    assert searching.contested(replace(known, findings=(cache, near)))
    assert not searching.contested(replace(known, findings=(cache, replace(near, knobs=cache.knobs)))), (
        "the same knob comes first either way"
    )
    measured = [replace(each, ceiling=replace(each.ceiling, how="measured")) for each in (cache, near)]
    assert not searching.contested(replace(known, findings=tuple(measured)))
    assert not searching.contested(replace(known, abstained="too few steps", findings=(cache, near)))
    assert not searching.contested(replace(known, findings=()))


def test_the_plan_says_why_this_order(found, stage):
    made, choice = optimizing.plan(found, *stage.diagnose(found, COMMAND), COMMAND)
    assert read_document(Plan, found.plan_path) == made
    assert [(each.knob, each.worth.saved_share) for each in made.candidates] == [("cache", 0.6667), ("fused", 0.2308)]
    assert made.candidates[0].worth.score > made.candidates[1].worth.score > 0
    assert choice.open == made.candidates


def test_an_experiment_that_was_being_measured_goes_on(found, stage, monkeypatch):
    """Interrupted while it was timed: the same experiment, with the check that was finished."""
    checks = []
    real = stage.check
    monkeypatch.setattr(verifying.fidelity, "check", lambda *a, **k: checks.append(1) or real(*a, **k))

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(verifying.bench, "compare", interrupted)
        with pytest.raises(KeyboardInterrupt):
            search(found)
    assert len(checks) == 1
    came_to = search(found)
    assert came_to.experiments[0].n == 1 and found.experiment(1).decision == "accepted"
    assert len(checks) == len(came_to.experiments) == 2, "the finished check of experiment 1 was not made again"


def run_in_child(tmp_path, found, moments: int) -> int:
    """The search in a process of its own that is killed after `moments` writes; its wait status."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        with pytest.MonkeyPatch.context() as patch:
            Stage(patch, tmp_path / "measured", die_after(moments))
            with found.locked():
                search(found, allowed=["order"])
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def survive(tmp_path, found, first: int, step: int) -> None:
    status, moments, kills = -1, first, 0
    while status != 0:
        status = run_in_child(tmp_path, found, moments)
        assert status in {0, signal.SIGKILL}, f"exit {os.waitstatus_to_exitcode(status)} after {kills} kills"
        moments, kills = moments + step, kills + (status != 0)
    assert kills > 3
    settled = list(found.experiments())
    assert all(one.decision != "pending" for one in settled), "what was being measured went on"
    again = Counter((one.parent_commit, choosing.essence(optimizing.diff_of(found, one), one)) for one in settled)
    assert max(again.values()) == 1, "a finished experiment was made again"
    logged = Counter(entry.experiment for entry in found.log_entries() if entry.kind == "experiment")
    assert logged == Counter(one.n for one in settled), "each settled experiment stands in the log, once"
    assert read(found.sandbox.worktree) | {"cache": "1", "workers": "2", "order": "1"} == read(found.sandbox.worktree)
    assert sandbox.head(found.sandbox) == found.tip()
    assert found.combination(COMMAND).verdict == "accept"
    assert read_document(Search, found.search_path).ending


@pytest.fixture
def whole(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return session.create(project(tmp_path / "project", ("cache", "workers", "order")))


def test_kills_cost_nothing_that_was_finished(whole, tmp_path):
    survive(tmp_path, whole, 9, 13)


@pytest.mark.full
@pytest.mark.parametrize("first", range(4, 24, 2))
def test_a_kill_at_any_moment_costs_nothing_that_was_finished(whole, tmp_path, first):
    survive(tmp_path, whole, first, 3)


def test_another_question_is_another_search(found, stage, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(verifying.bench, "compare", interrupted)
        with pytest.raises(KeyboardInterrupt):
            search(found)
    known = read_document(Search, found.search_path)
    assert known.current == 1 and not known.ending
    came_to = search(replace(found), allowed=["order"])
    assert came_to.experiments[0].n == 2, "the open experiment was judged by other demands"


@pytest.mark.full
def test_bad_input_on_the_command_line_is_one_line_and_makes_nothing(user):
    (user.project / "empty.diff").write_text("")
    for words, says in (
        (("optimize", "try", "--patch", "empty.diff", "--", "python", "train.py"), "is empty"),
        (("optimize", "auto", "--budget", "5s", "--", "python", "train.py"), "too small for the loop"),
    ):
        ran = user.trainflash(*words)
        assert ran.code == 2 and says in ran.err and "Traceback" not in ran.err, ran.err
    assert user.trainflash("log").code == 2, "no experiment, no log"


def crash_patch(user) -> str:
    """A patch after which the program runs out of memory in its first step."""
    text = (user.project / "train.py").read_text()
    (user.project / "train.py").write_text(text.replace("    return value\n", "    raise MemoryError('no room for the cache')\n"))
    diff = user.git("diff")
    user.git("checkout", "--", "train.py")
    path = user.project.parent / "crash.diff"
    path.write_text(diff)
    return str(path)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_patch_that_crashes_is_recorded_and_costs_little(user):
    ran = user.trainflash("sandbox", "create", ".")
    assert ran.code == 0, ran.err
    path = crash_patch(user)
    tried = user.trainflash("optimize", "try", "--patch", path, "--json", "--", sys.executable, "train.py", timeout=900)
    assert tried.code == 4, tried.err
    [one] = tried.document["experiments"]
    assert one["decision"] == "rejected" and "no room for the cache" in one["verdict"]["reasons"][0]
    assert one["verdict"]["starts"] == 0, "it was never timed"
    assert user.trainflash("log", "note", "--experiment", "1", "the cache is larger than memory").code == 0
    entries = user.trainflash("log", "--json").document["entries"]
    assert [(entry["kind"], entry["experiment"], entry["decision"]) for entry in entries[-2:]] == [
        ("experiment", 1, "rejected"), ("note", 1, ""),
    ]  # fmt: skip


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_a_search_that_is_killed_goes_on(user):
    """A real search, killed with SIGKILL while its first experiment is measured; the same command again goes on with it."""
    command = ["optimize", "auto", "--budget", "20m", "--json", "--", sys.executable, "train.py"]
    running = subprocess.Popen(
        user.command(*command), cwd=user.project, env=user.environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    for line in running.stderr:
        if "start 2" in line:
            break
    running.kill()
    running.communicate(timeout=120)
    went_on = user.trainflash(*command, timeout=2400)
    assert went_on.code == 0, went_on.err
    assert "going on with the search" in went_on.err
    assert [one["n"] for one in went_on.document["experiments"]] == list(range(1, 1 + len(went_on.document["experiments"])))
    assert sum("diagnose-001" in line for line in went_on.err.splitlines()) == 0, "the diagnosis was finished before the kill"
    assert went_on.document["accepted"], went_on.document["stopped_because"]


@pytest.mark.full
def test_a_search_goes_on_from_a_round_that_was_tried_at_once(tmp_path, monkeypatch):
    """What the round rejected is not tried again; what was proven beside the best is, on top of it; the diagnosis is a new one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found = session.create(project(tmp_path / "project", ("cache", "workers", "fused")))
    stage = Stage(monkeypatch, tmp_path / "measured")
    monkeypatch.setattr(
        optimizing, "propose", lambda made, name, value, at, command: candidate(Path(made.sandbox.worktree), name, str(value))
    )

    def run(tried):
        for each in tried:
            optimizing.try_candidate(session.Session(sandbox.load(each.directory)), each.candidate, COMMAND, Demands())
        return ["" for _ in tried]

    made = rounds.at_once(found, ("cache=1", "workers=1", "fused=1"), COMMAND, Demands(allowed=frozenset({"close"})), run)
    assert [one.decision for one in made] == ["accepted", "inconclusive", "rejected"]
    came_to = search(found)
    tried = [(one.knob, one.value, one.parent, one.decision) for one in came_to.experiments]
    assert tried[0] == ("workers", "1", 1, "accepted") and not {"cache", "fused"} & {knob for knob, *_ in tried}
    assert stage.measured[:3] == ["cache=1", "workers=1", "fused=1"] and Counter(stage.measured)["fused=1"] == 1
    assert came_to.before.run.startswith("diagnose") and read(found.sandbox.worktree)["cache"] == "1"


def test_changes_of_the_command_stand_on_one_another_and_beside_changes_of_files(found, stage, monkeypatch):
    typed = Command(("python", "train.py", "--workers", "0", "--check"))
    ran: list[tuple[str, str]] = []

    def compare(box, baseline, changed, place, **options):
        ran.append((shlex.join(baseline.argv), shlex.join(changed.argv)))
        return Runs(typed, (), 5), SpeedVerdict("accept", Speedup(1.3, 1.2, 1.4, 4), "faster")

    monkeypatch.setattr(verifying.bench, "compare", compare)

    def words(value: str, *changes: WordChange) -> Candidate:
        return Candidate("option", value, "input_cpu", None, "same", "", f"option {value}", words=changes)

    first = optimizing.try_candidate(found, words("2", WordChange(3, "0", "2")), typed, Demands())
    assert (first.decision, first.files, first.commit != first.parent_commit) == ("accepted", (), True)
    alone = approving.propose(found, None)
    assert (alone.approvable, alone.run_as) == (False, "python train.py --workers 2 --check") and alone.run_as in alone.reason
    assert showing.view(found).approve_command is None and showing.view(found).run_as == alone.run_as
    optimizing.try_candidate(found, words("off", WordChange(4, "--check", None)), typed, Demands())
    optimizing.try_candidate(found, candidate(Path(found.sandbox.worktree), "cache", "1"), typed, Demands())
    with pytest.raises(UsageError, match="no '0' as its word 4"):
        verifying.verify_experiment(found, 1, Demands(), Command(("python", "train.py")))
    assert verifying.verify_combination(found, typed, Demands()).verdict == "accept"
    one, two, three = "--workers 0 --check", "--workers 2 --check", "--workers 2"
    assert [(a.removeprefix("python train.py "), b.removeprefix("python train.py ")) for a, b in ran] == [
        (one, two), (two, three), (three, three), (one, three),
    ]  # fmt: skip
    proposal = approving.propose(found, None)
    assert (proposal.approvable, proposal.files, proposal.run_as) == (True, ("train.py",), "python train.py --workers 2")
    assert "start the training as `python train.py --workers 2`" in report.next_step(showing.view(found))


def test_time_that_is_left_goes_to_the_most_promising_open_answer_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = session.create(project(tmp_path / "project", ("noisy", "unstable")))
    stage = Stage(monkeypatch, tmp_path / "measured")
    seen: list[str] = []

    def compare(box, baseline, changed, place, **options):
        name, _ = stage._change(box)
        seen.append(name)
        gain = {"noisy": 1.2, "unstable": 1.4}[name]
        if seen.count("unstable") > 1 and name == "unstable":
            return Runs(COMMAND, (), 5), SpeedVerdict("accept", Speedup(1.4, 1.2, 1.6, 6), "faster")
        return Runs(COMMAND, (), 5), SpeedVerdict("inconclusive", Speedup(gain, 0.9, 2.0, 5), "5 of 6 starts")

    monkeypatch.setattr(verifying.bench, "compare", compare)
    came_to = search(made)
    assert seen == ["noisy", "unstable", "unstable"], "the larger gain is gone on with, and nothing twice"
    assert [(one.knob, one.decision) for one in came_to.experiments if one.knob == "unstable"] == [("unstable", "accepted")]


def test_an_open_answer_without_a_gain_is_left(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = session.create(project(tmp_path / "project", ("noisy",)))
    stage = Stage(monkeypatch, tmp_path / "measured")
    came_to = search(made)
    assert came_to.ending != "budget" and stage.measured == ["noisy=1"]


def test_a_search_without_a_gain_says_what_to_do_next(found, stage):
    """The budget buys no second experiment: what it would take, and the largest cost, each as a command."""
    stage.pays = set()
    now = [0.0]

    def clock() -> float:
        now[0] += 45.0
        return now[0]

    came_to = search(found, budget_s=150.0, clock=clock)
    shown = showing.view(found, spent_s=came_to.spent_s, stopped_because=came_to.stopped_because)
    assert [one.decision for one in came_to.experiments] == ["rejected"] and shown.approve_command is None
    untried, task = shown.next_steps
    assert "fused = 1 was not tried yet; it saves at most 23% of the time" in untried.said
    assert re.fullmatch(r"trainflash optimize try fused=1 --at train\.py:\d+ --budget \d+m -- python train\.py", untried.command)
    assert task.command == "trainflash optimize brief --finding repeated_work -- python train.py"
    out = StringIO()
    Console(file=out, width=200).print(report.tune_result(shown))
    for text in (out.getvalue(), html.unescape(report.html(shown, (), found.plan())), report.markdown(shown)):
        assert untried.command in text and task.command in text and "nothing awaits" not in text


def test_an_open_answer_is_what_to_go_on_with(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = session.create(project(tmp_path / "project", ("noisy",)))
    Stage(monkeypatch, tmp_path / "measured")
    search(made)
    first = showing.view(made).next_steps[0]
    assert "noisy = 1 was faster so far" in first.said
    assert re.fullmatch(r"trainflash verify --experiment 1 --budget \d+m -- python train\.py", first.command)
