from __future__ import annotations

from dataclasses import replace

import pytest

from trainflash.schema import Check, Command, Experiment, Fidelity, Resources, Speedup, SpeedVerdict, WholeRun
from trainflash.verdict import agreed_to, judge, lacking, waits_for

FASTER = SpeedVerdict("accept", Speedup(1.3, 1.2, 1.4, 4), "1.300 [1.200, 1.400] over 4 starts")
SAME = Fidelity("same", (), 0.0, 0.0, 1e-3, 40, ("epoch boundary",), (), (Check("loss", True, "40 equal losses"),))


def fidelity(verdict, *changed, **fields):
    return replace(SAME, verdict=verdict, changed=changed, mean_abs_loss_delta=1e-4, **fields)


def test_faster_and_the_same_is_accepted():
    verdict = judge(FASTER, SAME, protection="mount", spent_s=42.0)
    assert verdict.verdict == "accept"
    assert (verdict.starts, verdict.protection, verdict.spent_s) == (4, "mount", 42.0)
    assert verdict.speedup is FASTER.speedup
    assert FASTER.reason in verdict.reasons


@pytest.mark.parametrize(("speed", "same"), [(None, SAME), (FASTER, None), (None, None)])
def test_what_was_not_measured_is_inconclusive(speed, same):
    verdict = judge(speed, same)
    assert verdict.verdict == "inconclusive"
    assert verdict.reasons


@pytest.mark.parametrize(
    "speed",
    [
        replace(FASTER, decision="inconclusive", reason="too noisy"),
        replace(FASTER, decision="continue"),
        replace(FASTER, speedup=None),
        replace(FASTER, speedup=replace(FASTER.speedup, mean=float("nan"))),
        replace(FASTER, speedup=replace(FASTER.speedup, starts=3)),
        replace(FASTER, speedup=replace(FASTER.speedup, ci_low=1.01)),
        replace(FASTER, speedup=replace(FASTER.speedup, ci_high=float("inf"))),
    ],
)
def test_weak_speed_is_never_accepted(speed):
    assert judge(speed, SAME).verdict == "inconclusive"


def test_slower_is_rejected_even_when_fidelity_is_missing():
    slower = replace(FASTER, decision="reject", reason="slower")
    assert judge(slower, None).verdict == "reject"
    assert judge(slower, SAME).reasons[0] == "speed: slower"


@pytest.mark.parametrize("updates", [0, 12])
def test_a_candidate_that_crashed_is_rejected_with_its_evidence(updates):
    why = "the candidate failed with exit code 137 after 0 updates: out of memory"
    crashed = fidelity("changed", "failed", updates=updates, checks=(Check("exit code", False, why),), reasons=(why,))
    verdict = judge(None, crashed, allowed=frozenset({"numerics", "order"}))
    assert verdict.verdict == "reject"
    assert verdict.reasons[0] == f"fidelity: the candidate failed: {why}"


def test_slow_steps_that_may_be_slower_are_said_in_an_accept():
    unsure = replace(FASTER, speedup=replace(FASTER.speedup, p95=0.72, p95_high=1.1))
    accepted = judge(unsure, SAME)
    assert accepted.verdict == "accept" and "the p95 step was 0.72 times as fast, at best 1.10" in accepted.reasons[-1]
    assert not any("p95" in reason for reason in judge(replace(unsure, speedup=replace(unsure.speedup, p95=0.97)), SAME).reasons)


@pytest.mark.parametrize("tail", ["p95", "p99"])
def test_a_worse_tail_forbids_acceptance(tail):
    harmed = replace(FASTER, speedup=replace(FASTER.speedup, **{tail: 0.7, f"{tail}_high": 0.9}))
    unsure = replace(FASTER, speedup=replace(FASTER.speedup, **{tail: 0.7, f"{tail}_high": 1.1}))
    assert judge(harmed, SAME).verdict == "reject"
    assert tail in judge(harmed, SAME).reasons[0]
    assert judge(unsure, SAME).verdict == "accept"


def test_close_is_refused_where_every_bit_is_asked_for():
    close = fidelity("close")
    assert judge(FASTER, close).verdict == "reject"
    assert "asks for every bit" in judge(FASTER, close, allowed=frozenset({"order"})).reasons[0]
    accepted = judge(FASTER, close, allowed=frozenset({"numerics"}))
    assert accepted.verdict == "accept"
    assert "equal but for rounding" in accepted.reasons[-1]


def test_changed_needs_agreement_to_every_name():
    changed = fidelity("changed", "order", "batch")
    asked = judge(FASTER, changed, allowed=frozenset({"order"}))
    assert (asked.verdict, asked.needs) == ("needs_agreement", ("batch",))
    assert asked.reasons[0].startswith("needs agreement: batch") and asked.speedup == FASTER.speedup
    assert judge(FASTER, changed, allowed=frozenset({"order", "batch"})).verdict == "accept"
    assert judge(FASTER, fidelity("changed"), allowed=frozenset({"order", "numerics"})).verdict == "reject"


@pytest.mark.parametrize(
    "unsound",
    [
        fidelity("inconclusive", reasons=("no losses",)),
        replace(SAME, mean_abs_loss_delta=None),
        replace(SAME, mean_abs_loss_delta=float("nan")),
        replace(SAME, updates=0),
        replace(SAME, checks=()),
        replace(SAME, checks=(Check("loss", None, "not measured"),)),
        replace(SAME, changed=("order",)),
    ],
)
def test_unsound_fidelity_is_never_accepted(unsound):
    verdict = judge(FASTER, unsound, allowed=frozenset({"order", "numerics"}))
    assert verdict.verdict == "inconclusive"
    assert verdict.reasons[0].startswith("fidelity")


def test_what_was_not_seen_stands_in_an_acceptance():
    assert "not seen: evaluation" in judge(FASTER, replace(SAME, not_seen=("evaluation",))).reasons[-1]


def test_what_was_measured_beside_the_step_is_handed_on():
    whole = WholeRun(1.21, 1000, 20.0, 16.5, 4.0, 0.0, None)
    used = Resources(5.0, 4.0, 300.0, 640.0)
    speed = replace(FASTER, unit="sample", whole_run=whole, resources=used, least_detectable=1.09, starts_needed=8)
    verdict = judge(speed, SAME)
    assert (verdict.unit, verdict.whole_run, verdict.resources) == ("sample", whole, used)
    assert (verdict.least_detectable, verdict.starts_needed) == (1.09, 8)
    assert judge(None, SAME).whole_run is None


@pytest.mark.parametrize(
    ("same", "allowed", "waits"),
    [
        (fidelity("close"), (), {"numerics"}),
        (fidelity("changed", "order", "cadence"), ("order",), {"cadence"}),
        (fidelity("changed", "order", "updates"), (), set()),
        (fidelity("inconclusive"), (), set()),
        (SAME, (), set()),
    ],
)
def test_what_was_refused_for_want_of_an_agreement_alone_says_of_which(same, allowed, waits):
    allowed = frozenset(allowed)
    judged = judge(None, same, allowed=allowed)
    assert waits_for(judged, allowed=allowed) == waits


def test_what_was_timed_waits_for_nobody():
    slower = replace(FASTER, decision="reject", reason="slower")
    assert waits_for(judge(slower, fidelity("close"), allowed=frozenset({"numerics"}))) == frozenset()
    assert waits_for(None) == frozenset()


def test_what_needs_an_agreement_is_neither_accepted_nor_refused_and_says_what_changes():
    changed = fidelity("changed", "order", reasons=("order: update 3: samples come in another order over the epoch",))
    asked = judge(FASTER, changed)
    assert (asked.verdict, asked.needs, asked.speedup) == ("needs_agreement", ("order",), FASTER.speedup)
    assert "another order over the epoch" in asked.reasons[0] and FASTER.reason in asked.reasons
    untimed = judge(None, changed)
    assert (untimed.verdict, untimed.needs, untimed.speedup) == ("needs_agreement", ("order",), None)
    assert "its speed was not measured" in untimed.reasons[1]


def test_an_agreement_is_asked_for_only_where_it_would_do():
    slower = replace(FASTER, decision="reject", reason="slower")
    noisy = replace(FASTER, decision="inconclusive", reason="too noisy")
    order = fidelity("changed", "order")
    assert (judge(slower, order).verdict, judge(slower, order).needs) == ("reject", ())
    assert (judge(noisy, order).verdict, judge(noisy, order).needs) == ("inconclusive", ("order",))
    for same in (
        fidelity("changed", "order", "updates"),  # nobody can agree to fewer updates
        fidelity("changed", "order", "failed"),
        fidelity("changed"),
        fidelity("inconclusive", "order"),
        fidelity("changed", "order", not_judged=("loss",), checks=(Check("coverage", True, "alike"),)),  # nothing shows that it learns
    ):
        assert lacking(same, frozenset({"numerics"})) == frozenset()
        assert judge(FASTER, same, allowed=frozenset({"numerics"})).verdict in {"reject", "inconclusive"}


def test_who_asks_for_every_bit_is_not_asked_about_rounding():
    rounds_too = fidelity("changed", "order", "numerics")
    assert judge(FASTER, rounds_too).verdict == "reject"
    assert judge(FASTER, rounds_too, allowed=frozenset({"numerics"})).needs == ("order",)


def test_the_command_that_agrees_names_all_that_the_verdict_rests_on():
    judged = judge(FASTER, fidelity("changed", "cadence", "order"), allowed=frozenset({"cadence", "numerics"}))
    one = Experiment(
        n=3, parent=None, knob="patch", value="", finding=None, location=None, risk="same", why="", commit="c", parent_commit="p",
        diff_digest="", files=(), command=Command(("python", "train.py")), created_utc="", verdict=judged, decision="needs_agreement",
    )  # fmt: skip
    assert judged.needs == ("order",)
    assert one.agree_command == "trainflash verify --experiment 3 --accept-change cadence,order"
    assert replace(one, verdict=judge(FASTER, SAME)).agree_command == ""


def test_a_change_of_what_never_ran_is_not_called_slow_for_the_steps_beside_it():
    even = SpeedVerdict("reject", Speedup(0.99, 0.97, 1.02, 6), "not faster by 4% or more")
    behind = replace(SAME, not_seen=("evaluation", "model.py:47-49", "model.py:51-58"))
    found = judge(even, behind)
    assert found.verdict == "inconclusive" and "model.py:47-49, model.py:51-58" in found.reasons[0]
    assert judge(even, replace(SAME, not_seen=("evaluation", "checkpoint"))).verdict == "reject"
    assert judge(replace(even, speedup=Speedup(0.9, 0.85, 0.95, 6)), behind).verdict == "reject"


@pytest.mark.parametrize("agreed", [False, True])
def test_changed_lines_that_never_ran_need_an_agreement(agreed):
    unseen = replace(SAME, not_seen=("schedule", "train.py:24-26"))
    judged = judge(FASTER, unseen, allowed=frozenset({"unseen"} if agreed else ()))
    assert (judged.verdict, judged.needs) == (("accept", ()) if agreed else ("needs_agreement", ("unseen",)))
    assert "train.py:24-26" in " ".join(judged.reasons)
    assert waits_for(judged) == (frozenset() if agreed else {"unseen"}) and agreed_to(judged) == ({"unseen"} if agreed else frozenset())
    assert judge(FASTER, replace(unseen, not_seen=("schedule",))).verdict == "accept"
