"""What a search may try: never what is known, values within bounds, nothing that the owner did not agree to."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as some

from trainflash.schema import Candidate, Check, Command, Experiment, Fidelity, Location, Verdict, Worth
from trainflash.workflow.choosing import GROWN, MOST_VALUES, choose, essence

SLOWER = Verdict("reject", None, None, 4, ("speed: not faster",))
OTHER = replace(SLOWER, fidelity=Fidelity("changed", ("order",), None, None, 1e-3, 40, (), (), (Check("order", False, "other"),)))
CRASHED = replace(SLOWER, fidelity=replace(OTHER.fidelity, changed=("failed",)))


def candidate(value: str, knob: str = "workers", risk: str = "same", saved: float = 0.5, line: int = 3) -> Candidate:
    diff = f"--- a/train.py\n+++ b/train.py\n@@ -{line} +{line} @@\n-{knob} = 0\n+{knob} = {value}\n"
    return Candidate(knob, value, "input_cpu", Location("train.py", line, "main"), risk, diff, "", worth=Worth(saved, 0.5, 60.0))


def made(n: int, of: Candidate, decision: str, *, parent: str = "base", verdict: Verdict | None = SLOWER) -> Experiment:
    return Experiment(
        n=n, parent=None, knob=of.knob, value=of.value, finding=of.finding, location=of.location, risk=of.risk, why="", commit=f"c{n}",
        parent_commit=parent, diff_digest="", files=("train.py",), command=Command(("x",)), created_utc="", verdict=verdict,
        decision=decision, saved_share=of.worth.saved_share,
    )  # fmt: skip


def choice(candidates, history, tip="base", **options):
    """`history`: (experiment, the candidate that it was)."""
    diffs = {one.n: of.diff for one, of in history}
    options = {"allowed": frozenset(), **options}
    return choose(candidates, [one for one, _ in history], tip=tip, diff_of=lambda one: diffs[one.n], **options)


def history(*steps):
    """Steps of (candidate, decision); an accepted one moves the tip."""
    found, tip = [], "base"
    for n, (of, decision, *verdict) in enumerate(steps, 1):
        found.append((made(n, of, decision, parent=tip, verdict=verdict[0] if verdict else SLOWER), of))
        tip = f"c{n}" if decision == "accepted" else tip
    return found, tip


def values(found) -> list[str]:
    return [each.value for each in found.open]


def test_what_was_never_done_any_more_may_be_done_more_often():
    gone = (Check("checkpoint contents", False, "32 checkpoints → none"),)
    too_rare = replace(OTHER, fidelity=replace(OTHER.fidelity, changed=("checkpoint", "cadence"), checks=gone))
    past, tip = history((candidate("1000", risk="cadence"), "rejected", too_rare))
    options = {"allowed": frozenset({"cadence"})}
    assert values(choice([candidate(each, risk="cadence") for each in ("2000", "200")], past, tip, **options)) == ["200"]
    past, tip = history((candidate("1000", risk="cadence"), "rejected", OTHER))
    assert values(choice([candidate("200", risk="cadence")], past, tip, **options)) == []


def test_the_same_change_on_the_same_commit_is_not_tried_twice():
    past, tip = history((candidate("1"), "rejected"))
    found = choice([candidate("1", line=9), candidate("2")], past, tip)
    assert values(found) == ["2"], "the line may have moved"
    assert found.left[0][1] == "tried in experiment 1: speed: not faster"


def test_an_open_answer_deserves_another_try_in_another_search_only():
    past, tip = history((candidate("1"), "inconclusive"))
    assert values(choice([candidate("1")], past, tip)) == ["1"]
    assert values(choice([candidate("1")], past, tip, finished=frozenset({1}))) == []
    interrupted, tip = history((candidate("1"), "pending"))
    assert values(choice([candidate("1")], interrupted, tip)) == ["1"]


def test_values_climb_while_they_pay_and_stop_at_the_first_that_does_not():
    past, tip = history((candidate("1"), "accepted"))
    assert values(choice([candidate("2"), candidate("4")], past, tip)) == ["2", "4"]
    past, tip = history((candidate("1"), "accepted"), (candidate("2"), "accepted"))
    assert values(choice([candidate("1"), candidate("4")], past, tip)) == ["4"], "never back"
    past, tip = history((candidate("1"), "accepted"), (candidate("2"), "rejected"))
    found = choice([candidate("4"), candidate("8")], past, tip)
    assert values(found) == [] and "paid no more on top of 1" in found.left[0][1]


def test_before_one_pays_others_are_tried_but_not_many():
    tried = [(candidate(str(n)), "rejected") for n in range(1, MOST_VALUES)]
    past, tip = history(*tried)
    assert values(choice([candidate("16")], past, tip)) == ["16"]
    past, tip = history(*tried, (candidate("16"), "rejected"))
    assert values(choice([candidate("32")], past, tip)) == []


def test_a_value_that_trains_something_else_ends_it_and_one_that_crashes_does_not():
    past, tip = history((candidate("8"), "rejected", CRASHED))
    assert values(choice([candidate("4")], past, tip)) == ["4"]
    past, tip = history((candidate("8"), "rejected", OTHER))
    assert values(choice([candidate("4")], past, tip)) == []


def test_consent_is_asked_by_name_and_used_once():
    every = candidate("2", "eval_cadence", "cadence")
    found = choice([every], [])
    assert (found.open, found.unagreed) == ((), (every,))
    assert choice([every], [], allowed=frozenset({"cadence"})).open == (every,)
    past, tip = history((every, "accepted"))
    assert values(choice([candidate("4", "eval_cadence", "cadence")], past, tip, allowed=frozenset({"cadence"}))) == []


def test_what_did_not_pay_is_tried_again_only_where_its_cost_has_grown():
    past, tip = history((candidate("1", saved=0.2), "rejected"), (candidate("1", "cache"), "accepted"))
    assert values(choice([candidate("1", saved=0.2 * GROWN)], past, tip)) == []
    assert values(choice([candidate("1", saved=0.2 * GROWN + 0.01)], past, tip)) == ["1"]
    other, tip = history((candidate("1", saved=0.1), "rejected", OTHER), (candidate("1", "cache"), "accepted"))
    assert values(choice([candidate("1", saved=0.9)], other, tip)) == [], "it would train something else again"


def test_a_change_is_known_again_however_its_diff_was_written():
    """Git and difflib may call another of two equal lines the added one, and cut a rewritten block elsewhere."""
    added = replace(candidate("1"), diff="--- a/t.py\n+++ b/t.py\n@@ -2,2 +2,4 @@\n import torch\n+\n+torch.set_num_threads(2)\n \n")
    by_git = replace(added, diff="--- a/t.py\n+++ b/t.py\n@@ -2,2 +2,4 @@\n import torch\n \n+torch.set_num_threads(2)\n+\n")
    past = [(made(1, added, "rejected"), by_git)]
    assert values(choice([added], past)) == []
    moved = replace(added, diff="--- a/t.py\n+++ b/t.py\n@@ -2,2 +2,2 @@\n-a()\n b()\n+a()\n")
    by_git = replace(moved, diff="--- a/t.py\n+++ b/t.py\n@@ -2,2 +2,2 @@\n+b()\n a()\n-b()\n")
    assert values(choice([moved], [(made(1, moved, "rejected"), by_git)])) == []
    other = replace(added, diff=added.diff.replace("t.py", "u.py"))
    assert values(choice([other], past)) == ["1"]


def test_small_costs_are_left_with_their_reason():
    found = choice([candidate("1")], [], hopeless=frozenset({"input_cpu"}))
    assert found.open == () and "too small" in found.left[0][1]


@given(
    some.lists(some.sampled_from(["accepted", "rejected", "inconclusive", "failed"]), max_size=40),
    some.lists(some.integers(1, 64), min_size=1, max_size=8, unique=True),
)
def test_every_search_ends(outcomes, ladder):
    """Whatever comes of each experiment, one place is tried a bounded number of times, and no change twice on the same commit."""
    past, tip, seen = [], "base", set()
    for n, decision in enumerate(outcomes, 1):
        paid = [of.value for one, of in past if one.decision == "accepted"]
        current = paid[-1] if paid else "0"
        offered = [replace(candidate(str(v)), diff=f"-w = {current}\n+w = {v}\n") for v in ladder if str(v) != current]
        found = choice(offered, past, tip, finished=frozenset(one.n for one, _ in past))
        assert len(found.open) + len(found.left) == len(offered)
        if not found.open:
            break
        first = found.open[0]
        assert (tip, essence(first.diff, first)) not in seen
        seen.add((tip, essence(first.diff, first)))
        past.append((made(n, first, decision, parent=tip), first))
        tip = f"c{n}" if decision == "accepted" else tip
    assert len({of.value for _, of in past}) <= MOST_VALUES
    assert len(past) <= MOST_VALUES * len(ladder)


def test_a_finding_is_answered_by_what_is_likely_and_needs_nobody():
    weak = replace(candidate("1"), worth=Worth(0.5, 0.1, 60.0))
    asked = candidate("2", risk="cadence")
    assert choice([weak, asked], []).answered == frozenset()
    assert choice([weak, asked, candidate("3")], []).answered == {"input_cpu"}
    assert choice([asked], [], allowed=frozenset({"cadence"})).answered == {"input_cpu"}
