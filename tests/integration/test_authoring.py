"""The author's part of a search: after settings and transforms; one more try with the reason; its limits, its end, what is logged.

The author is a real script in a real room; what is diagnosed and measured is given (see `search_stage`).
"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from search_stage import COMMAND, SAME, Stage, project, read

from trainflash import author, knobs, report
from trainflash.errors import UsageError
from trainflash.schema import Plan, read_document
from trainflash.schema.authors import Attempt
from trainflash.workflow import authoring, briefing, ledger, searching, session, showing
from trainflash.workflow.verifying import Demands

BUDGET_S = 3600.0


@pytest.fixture
def found(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return session.create(project(tmp_path / "project", ("cache", "workers", "fused")))


@pytest.fixture
def stage(tmp_path, monkeypatch):
    return Stage(monkeypatch, tmp_path / "measured")


@pytest.fixture
def no_knobs(stage, monkeypatch):
    """Neither settings nor transforms: all is left to the author."""
    monkeypatch.setattr(stage, "plan", None, raising=False)
    monkeypatch.setattr("trainflash.workflow.optimizing.knobs.plan", lambda *_, **__: ((), (), ()))


def script(tmp_path, text):
    path = tmp_path / "assistant"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return author.named(f"{shlex.quote(str(path))} {{brief}}")


LIMITS = author.Limits(minutes=1.0)


def search(found, writer, *, limits=LIMITS, allowed=()):
    demands = Demands(budget_s=BUDGET_S, allowed=frozenset(allowed))
    return searching.auto(found, COMMAND, demands, budget_s=BUDGET_S, writer=writer, limits=limits)


def setting(name, value):
    return f"sed -i 's/^{name} = .*/{name} = {value}/' train.py"


def test_settings_first_then_the_author_and_what_it_wrote_is_judged_and_kept(found, stage, tmp_path, monkeypatch):
    whole = stage.plan

    def without_cache(*given, **options):
        candidates, refused, briefs = whole(*given, **options)
        return tuple(each for each in candidates if each.knob != "cache"), refused, briefs

    monkeypatch.setattr("trainflash.workflow.optimizing.knobs.plan", without_cache)
    came_to = search(found, script(tmp_path, setting("cache", 1)))
    knobs = [(one.knob, one.decision) for one in came_to.experiments]
    assert ("author", "accepted") in knobs and ("workers", "accepted") in knobs
    assert knobs.index(("author", "accepted")) > knobs.index(("workers", "accepted")), "what costs no money comes first"
    one = next(one for one in came_to.experiments if one.knob == "author")
    assert (one.value, one.finding, one.why) == ("assistant", "repeated_work", "written by assistant")
    assert read(found.sandbox.worktree)["cache"] == "1" and read(found.sandbox.project)["cache"] == "0"
    assert came_to.combined.verdict == "accept"


@pytest.mark.parametrize(("budget_s", "first"), [(300.0, "author"), (3600.0, "fused")])
def test_where_time_is_short_the_author_goes_before_a_setting_that_saves_far_less(found, stage, tmp_path, monkeypatch, budget_s, first):
    whole = stage.plan

    def fused_alone(*given, **options):
        candidates, refused, briefs = whole(*given, **options)
        return tuple(each for each in candidates if each.knob == "fused"), refused, briefs

    monkeypatch.setattr("trainflash.workflow.optimizing.knobs.plan", fused_alone)
    writer = script(tmp_path, setting("cache", 1))
    came_to = searching.auto(found, COMMAND, Demands(budget_s=budget_s), budget_s=budget_s, writer=writer, limits=LIMITS)
    assert next(one.knob for one in came_to.experiments) == first
    assert "author" in [one.knob for one in came_to.experiments]


def asked_twice(found, tmp_path):
    """A search whose author first answers cache = 7, and cache = 1 once it is told of the refusal; with the brief that told it."""
    text = f"if grep -q 'last answer was refused' \"$1\"; then {setting('cache', 1)}; else {setting('cache', 7)}; fi"
    came_to = search(found, script(tmp_path, text), limits=author.Limits(minutes=1.0, attempts=2))
    return came_to, (found.directory / "authors" / "2" / "BRIEF.md").read_text()


def test_a_refusal_goes_back_once_with_its_reason_and_the_diff(found, stage, no_knobs, tmp_path):
    came_to, told = asked_twice(found, tmp_path)
    assert [(one.knob, one.decision) for one in came_to.experiments] == [("author", "rejected"), ("author", "accepted")]
    assert "## Your last answer was refused\n\nspeed: not faster by 4 % or more" in told
    assert "+cache = 7" in told and "It was taken back" in told
    assert came_to.stopped_because.startswith("--author assistant: its 2 attempts are used; ")


def test_an_attempt_that_is_no_answer_is_said_and_the_search_goes_on_to_the_next_place(found, stage, no_knobs, tmp_path):
    came_to = search(found, script(tmp_path, "echo 'Should I change it?'"))
    asked = [(each.finding, each.outcome) for each in came_to.attempts]
    assert asked == [("repeated_work", "failed")] * 2 + [("input_cpu", "failed")] * 2 + [("optimizer", "failed")] * 2
    assert {each.reason for each in came_to.attempts} == {"it asked instead of editing: Should I change it?"}
    entries = [entry for entry in found.log_entries() if entry.kind == "author"]
    assert [entry.reasons for entry in entries] == [("it asked instead of editing: Should I change it?",)] * 6
    assert {entry.decision for entry in entries} == {"failed"}
    assert "6 attempts are used" in came_to.stopped_because


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo 'Invalid API key · Please run /login'; exit 1", "its login is missing: Invalid API key"),
        ("echo 'model_not_found: gpt-99'; exit 1", "its model is not known: model_not_found"),
        ("echo 'Credit balance is too low'; exit 1", "its budget is spent: Credit balance is too low"),
    ],
)
def test_what_no_second_attempt_mends_ends_the_search_with_that_line(found, stage, no_knobs, tmp_path, text, reason):
    came_to = search(found, script(tmp_path, text))
    assert len(came_to.attempts) == 1 and came_to.attempts[0].outcome == "ended"
    assert came_to.stopped_because.startswith(f"--author assistant: {reason}")


def test_dollars_are_counted_over_all_attempts(found, stage, no_knobs, tmp_path):
    text = 'echo \'{"total_cost_usd": 0.75, "result": "no idea"}\''
    came_to = search(found, script(tmp_path, text), limits=author.Limits(minutes=1.0, dollars=1.5))
    assert len(came_to.attempts) == 2 and came_to.stopped_because.startswith("--author assistant: its budget of $1.50 is spent")


def test_what_is_logged_of_an_attempt(found, stage, no_knobs, tmp_path):
    text = f'echo \'{{"total_cost_usd": 0.25, "modelUsage": {{"m-1": {{}}}}, "result": "kept them"}}\'; {setting("cache", 1)}'
    came_to = search(found, script(tmp_path, text), limits=author.Limits(minutes=1.0, attempts=1))
    [attempt] = came_to.attempts
    [entry] = [entry for entry in found.log_entries() if entry.kind == "author"]
    assert (entry.cost_usd, entry.model, entry.decision, entry.value) == (0.25, "m-1", "answered", "assistant")
    assert entry.command.split()[0] == str(tmp_path / "assistant") and entry.minutes == attempt.minutes > 0
    page = (found.directory / "authors" / "1" / "BRIEF.md").read_bytes()
    assert briefing.digest(author.Task(page.decode(), "")) == entry.brief_digest == attempt.brief_digest
    given = json.loads((found.directory / "authors" / "1" / "brief.json").read_text())
    assert given["schema"] == "brief.v1" and given["finding"] == "repeated_work" and given["answer"]
    assert found.experiment(attempt.experiment).why == "written by assistant, model m-1: kept them"
    report.log(found.log_entries())


def test_the_ledger_says_what_each_source_earned_and_when_it_is_paid_back(found, stage, tmp_path):
    text = f"echo '{{\"total_cost_usd\": 0.25}}'; {setting('fused', 1)}"
    stage.pays.add(("fused", "1"))
    stage.pays.discard(("cache", "1"))
    search(found, script(tmp_path, text), limits=author.Limits(minutes=1.0, attempts=1))
    shown = showing.view(found)
    lines = {each.source: each for each in shown.ledger}
    assert set(lines) >= {"settings"}
    assert lines["settings"].accepted == sum(one.decision == "accepted" for one in found.experiments() if one.knob not in {"author"})
    page = report.html(shown, found.log_entries(), None)
    assert "What each source earned and cost" in page and "Paid back after" in report.markdown(shown)


def test_paid_back_is_what_was_spent_over_what_a_training_hour_saves():
    assert ledger.paid_back(30.0, 2.0) == 1.0, "half an hour is won back by one hour of the slow training"
    assert ledger.paid_back(30.0, 1.0) is None and ledger.paid_back(30.0, None) is None


def test_a_search_that_was_killed_keeps_the_answer_that_was_paid_for(found, stage, no_knobs, tmp_path, monkeypatch):
    writer = script(tmp_path, f"echo once >> /dev/shm/asked-{tmp_path.name}; {setting('cache', 1)}")
    count = Path(f"/dev/shm/asked-{tmp_path.name}")
    try:
        with monkeypatch.context() as patch:
            patch.setattr("trainflash.workflow.optimizing.make", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                search(found, writer, limits=author.Limits(minutes=1.0, attempts=1))
        came_to = search(found, writer, limits=author.Limits(minutes=1.0, attempts=1))
        assert count.read_text() == "once\n"
    finally:
        count.unlink(missing_ok=True)
    assert [(one.knob, one.decision) for one in came_to.experiments] == [("author", "accepted")]


def test_an_experiment_that_was_killed_before_it_was_written_down_is_made_once(found, stage, no_knobs, tmp_path, monkeypatch):
    writer = script(tmp_path, setting("cache", 7))
    with monkeypatch.context() as patch:
        patch.setattr(authoring.Writing, "tried", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            search(found, writer, limits=author.Limits(minutes=1.0, attempts=1))
    came_to = search(found, writer, limits=author.Limits(minutes=1.0, attempts=1))
    assert [(one.n, one.decision) for one in came_to.experiments] == [(1, "rejected")]
    assert [each.experiment for each in came_to.attempts] == [1]


def test_where_a_change_came_from_is_told_by_its_knob():
    names = {type(edit).__name__ for knob in knobs.catalogue() for edit in knob.edits}
    assert names >= ledger.TRANSFORMS, "each is a kind of edit that some knob makes"
    told = {name: ledger.source_of(name) for name in ("author", "patch", "memoize_function", "pin_memory", "gone_since")}
    assert list(told.values()) == ["author", "by hand", "transforms", "settings", "settings"]


def test_an_attempt_that_was_cut_off_is_asked_again(found, stage, no_knobs, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(author, "write", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            search(found, script(tmp_path, "true"))
    assert authoring.all_attempts(found) == ()
    came_to = search(found, script(tmp_path, setting("cache", 1)), limits=author.Limits(minutes=1.0, attempts=1))
    assert [one.decision for one in came_to.experiments] == ["accepted"]


def test_a_patch_that_is_kept_already_or_does_not_apply_is_a_failed_attempt(found, stage, no_knobs, tmp_path, monkeypatch):
    monkeypatch.setattr("trainflash.workflow.optimizing.make", lambda *_: (_ for _ in ()).throw(UsageError("the diff does not apply: x")))
    came_to = search(found, script(tmp_path, setting("cache", 1)), limits=author.Limits(minutes=1.0, attempts=1))
    assert [(each.outcome, each.reason) for each in came_to.attempts] == [("failed", "the diff does not apply: x")]
    assert came_to.experiments == ()


def test_a_healthy_program_asks_nobody(found, stage, tmp_path):
    stage.healthy = True
    came_to = search(found, script(tmp_path, setting("cache", 1)))
    assert (came_to.ending, came_to.attempts) == ("healthy", ())


def test_a_program_that_fails_asks_nobody(found, stage, tmp_path):
    stage.failing = True
    came_to = search(found, script(tmp_path, setting("cache", 1)))
    assert came_to.attempts == () and "could not be judged" in came_to.stopped_because


def test_without_an_author_nothing_of_it_is_said(found, stage):
    came_to = searching.auto(found, COMMAND, Demands(budget_s=BUDGET_S), budget_s=BUDGET_S)
    assert came_to.attempts == () and "author" not in came_to.stopped_because


def test_a_part_of_the_budget_is_kept_for_what_the_author_writes(found, stage, tmp_path):
    loop = searching._Loop(found, COMMAND, Demands(budget_s=1000.0), 1000.0, lambda: 0.0, script(tmp_path, "true"), author.Limits())
    loop.reserved_s = searching.AUTHOR_PART * 1000.0
    assert loop._share(several=False).budget_s == pytest.approx((1 - searching.AUTHOR_PART) * 1000.0)


@pytest.mark.parametrize(("spent_s", "asked"), [(650.0, 1), (700.0, 0)])
def test_a_search_that_overran_its_share_a_little_leaves_the_author_a_turn(found, stage, no_knobs, tmp_path, monkeypatch, spent_s, asked):
    loop = searching._Loop(found, COMMAND, Demands(budget_s=1000.0), 1000.0, lambda: 0.0, script(tmp_path, "true"), author.Limits())
    loop.plan, loop.clock, turns = SimpleNamespace(), lambda: spent_s, []
    monkeypatch.setattr(loop.writing, "next", lambda *_: turns.append(1))
    monkeypatch.setattr(searching.ordering, "price", lambda _: SimpleNamespace(least_s=900.0))
    assert loop._written(stage.diagnose(found, COMMAND)[0], "needs a person") is False
    assert len(turns) == asked and bool(loop.writing.ended) == (not asked)


def test_the_brief_of_the_largest_open_cost_is_the_one_that_authors_get(found, stage, no_knobs):
    stage.diagnose(found, COMMAND)
    made = briefing.asked(found, COMMAND, kind=None, at=None, allowed=frozenset({"order", "numerics"}))
    assert made.finding == "repeated_work" and made.agreed == ("numerics", "order") and "cache = 0" in made.code
    page = report.brief(made)
    for part in (
        "## What costs time",
        "## The code",
        "## What must stay the same",
        "## How it is judged",
        "agreed to these changes in kind: order",
    ):
        assert part in page
    assert briefing.asked(found, COMMAND, kind="optimizer", at=None, allowed=frozenset()).finding == "optimizer"
    with pytest.raises(UsageError, match="nothing was found of h2d") as caught:
        briefing.asked(found, COMMAND, kind="h2d", at=None, allowed=frozenset())
    assert "repeated_work at train.py:1" in caught.value.mend


def test_a_brief_needs_a_diagnosis(found, stage):
    with pytest.raises(UsageError, match="was not diagnosed"):
        briefing.asked(found, COMMAND, kind=None, at=None, allowed=frozenset())


def test_attempts_are_read_back_as_they_were_written(found, stage, no_knobs, tmp_path):
    search(found, script(tmp_path, setting("cache", 1)), limits=author.Limits(minutes=1.0, attempts=1))
    [attempt] = authoring.all_attempts(found)
    assert read_document(Attempt, found.directory / "authors" / "1" / "attempt.json") == attempt
    assert isinstance(found.plan(), Plan) and replace(attempt, n=1) == attempt


def test_a_patch_that_needs_an_agreement_goes_back_with_that_reason(found, stage, no_knobs, tmp_path, monkeypatch):
    def check(box, baseline, changed, place, **_):
        place.mkdir(parents=True, exist_ok=True)
        return replace(SAME, verdict="changed", changed=("order",)) if read(box.worktree)["cache"] == "7" else SAME

    monkeypatch.setattr("trainflash.workflow.verifying.fidelity.check", check)
    stage.pays.add(("cache", "7"))
    came_to, told = asked_twice(found, tmp_path)
    assert [one.decision for one in came_to.experiments] == ["needs_agreement", "accepted"]
    refusal = told.split("## Your last answer was refused")[1].split("```")[0]
    assert "agree" in refusal and "order" in refusal
