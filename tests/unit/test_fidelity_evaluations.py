"""What is compared of evaluations: targets, networks, data types, outputs; and what is a part of the step instead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from training_records import altered, check_of, evaluation, record, rounded, stream

from trainflash.fidelity import compare
from trainflash.fidelity.record import Record


def evaluated(*lines: dict) -> Record:
    return record(stream(evaluations=lines))


def both(old: dict, new: dict, name: str):
    """The answer of check `name` where the evaluation after update 20 differs, and all that has changed."""
    found = compare(evaluated(evaluation(20, **old)), evaluated(evaluation(20, **new)))
    return check_of(found, name), found.changed


TARGETS = [32, "10", "10", 40.0]


@pytest.mark.parametrize(
    ("score", "evidence"),
    [
        ([8, "5", "5", 10.0], "cross_entropy is given 32 targets → 8"),
        ([32, "f", "f", 40.0], "cross_entropy is given 32 other targets"),
        ([40, "14", "14", 50.0], "cross_entropy is given 32 targets → 40"),
    ],
)
def test_outputs_that_are_scored_against_other_targets_are_another_evaluation(score, evidence):
    check, changed = both({"scores": {"cross_entropy": TARGETS}}, {"scores": {"cross_entropy": score}}, "evaluation targets")
    assert changed == ("evaluation",) and evidence in check.evidence


@pytest.mark.parametrize(
    ("change", "ok"),
    [
        ({"scores": {"cross_entropy": [32, "10", "10", 40.00001]}}, True),
        ({"scores": {"cross_entropy": [64, "20", "20", 80.0]}}, True),  # asked for twice: one value is printed, the other added up
        ({"scores": {"nll_loss": [32, "f", "f", 40.0]}}, None),  # another way to the same score
        ({"scores": {}}, None),
        ({"multiset": "padded", "trimmed": "t", "scores": {"cross_entropy": [40, "77", "10", None]}}, True),  # zeros that pad the targets
    ],
)
def test_the_same_targets_may_be_scored_otherwise(change, ok):
    check, changed = both({"trimmed": "t", "scores": {"cross_entropy": TARGETS}}, change, "evaluation targets")
    assert check.ok is ok and changed == ()


def test_another_score_of_the_same_targets_is_another_result():
    other = {"outputs": [0.0, 0.0, 0], "scores": {"cross_entropy": [32, "10", "10", 41.0]}}
    check, changed = both({"outputs": [0.0, 0.0, 0], "scores": {"cross_entropy": TARGETS}}, other, "evaluation results")
    assert changed == ("evaluation",) and "relative difference 0.024" in check.evidence


def network(digest: str, *values: float) -> dict:
    plain = {"digest": digest, "sketch": list(values), "norm": 1.0, "values": 2, "buffer_sketch": [], "buffer_norm": 0.0}
    return {**plain, "types": ["float32"]}


LIVE, AVERAGE, FUSED_AVERAGE = network("a", 1.0, 0.0), network("b", 0.9, 0.1), network("c", 0.9000001, 0.1)


def test_a_network_that_stands_in_for_another_is_missing():
    two = {"weights": [LIVE, AVERAGE], "outputs": [0.0, 0.0, 0]}
    check, changed = both(two, {**two, "weights": [LIVE]}, "evaluated networks")
    assert changed == ("evaluation",) and "2 different networks are evaluated → 1" in check.evidence
    copies = {**two, "weights": [LIVE, LIVE, AVERAGE]}
    assert both(two, copies, "evaluated networks")[1] == (), "a copy is no other network"
    assert both(two, {**two, "weights": [AVERAGE, LIVE]}, "evaluated networks")[1] == (), "they may be asked in any order"


def test_means_over_the_same_batches_tell_which_network_answered():
    means = {"outputs": [0.0, 0.0, 0], "means": [4.0, 3.0, 8]}
    check, changed = both(means, {**means, "means": [3.7, 2.5, 8]}, "evaluation results")
    assert changed == ("evaluation",) and check.ok is False
    check, changed = both(means, {**means, "means": [1.9, 1.3, 4], "batches": "c", "forwards": 2, "results": 2}, "evaluation results")
    assert changed == () and check.ok is None, "means over other batches are other means"


def test_outputs_after_a_training_that_is_not_bitwise_the_same_are_held_against_the_nudge():
    def candidate(total: float) -> Record:
        return record(replace(rounded(1e-7, 1e-7).streams[0], evaluations=(evaluation(20, outputs=[total, 400.0, 320]),)))

    nudged = {"rerun": record(), "nudged": candidate(60.001)}
    assert compare(record(), candidate(60.002), **nudged).verdict == "close"
    found = compare(record(), candidate(61.0), **nudged)
    assert found.changed == ("evaluation",) and check_of(found, "evaluation outputs").ok is False
    restless = compare(record(), candidate(61.0), rerun=record(), nudged=candidate(60.5))
    assert restless.verdict == "close", "the nudge moves the outputs as far"
    assert "evaluation outputs" in compare(record(), candidate(60.1)).not_judged, "without a nudge nobody can tell, and that is said"


def test_single_samples_and_batches_of_them_hold_the_same_values():
    vectors = {"samples": 256, "multiset": "v", "trimmed": "v", "forwards": 32, "results": 32, "elements": "e1"}
    batched = {"multiset": "b", "trimmed": "b", "elements": "e1"}
    check, changed = both(vectors, batched, "evaluation inputs")
    assert changed == () and "in 32 forwards → 4" in check.evidence
    check, changed = both(vectors, {**batched, "elements": "e2"}, "evaluation inputs")
    assert changed == ("evaluation",) and "256 samples → 32" in check.evidence
    check, changed = both(vectors, {**batched, "outputs": [66.0, 400.0, 320]}, "evaluation inputs")
    assert "evaluation" in changed, "read in another layout they are other samples"
    check, changed = both(vectors, {**batched, "outputs": [60.0, 400.0, 80]}, "evaluation inputs")
    assert "evaluation" in changed, "fewer answers"


def test_a_network_is_known_by_its_parameters_whatever_its_class_is_called():
    ours = [evaluation(n, net="n1") for n in (10, 20, 30)]
    theirs = [evaluation(n, net="n1", of=["FastNet", False]) for n in (10, 20, 30)]
    assert compare(evaluated(*ours), evaluated(*theirs)).verdict == "same"
    assert compare(evaluated(*ours), evaluated(*theirs[:1])).changed == ("cadence",)
    teacher = [evaluation(n, net="n1", samples=8, multiset="f") for n in (10, 20, 30)]
    more = {"samples": 40, "multiset": f"{0xBEEF + 0xF:x}", "forwards": 8, "results": 8}
    with_teacher = [evaluation(n, net="n1", outputs=[6.0 * n, 800.0, 640], **more) for n in (10, 20, 30)]
    assert compare(evaluated(*with_teacher), evaluated(*teacher, *theirs)).changed == (), "two classes on one side, one on the other"
    other_parameters = [evaluation(n, net="n2") for n in (10, 20, 30)]
    assert compare(evaluated(*ours), evaluated(*other_parameters)).verdict == "same", "then the class tells"


def asked(*, of: int, **more) -> list[dict]:
    return [evaluation(n, of=["Teacher", False], samples=4, multiset=f"{n + 1:x}", **{"step": True, **more}) for n in range(of)]


def test_what_is_asked_about_the_steps_own_batch_is_judged_by_the_losses():
    usual = [evaluation(10), evaluation(20), evaluation(30)]
    kept = compare(evaluated(*usual, *asked(of=30)), evaluated(*usual, *asked(of=10)))
    assert kept.verdict == "same", kept.reasons
    assert compare(evaluated(*usual, *asked(of=30)), evaluated(*usual)).verdict == "same"
    assert "cadence" in compare(evaluated(*usual, *asked(of=30)), evaluated(usual[1], *asked(of=10))).changed, "the evaluation stays judged"


def test_an_evaluation_that_runs_at_each_update_stays_judged():
    held_out = compare(evaluated(*asked(of=30, step=False)), evaluated(*asked(of=10, step=False)))
    assert "cadence" in held_out.changed
    seldom = compare(evaluated(*asked(of=30)[::3]), evaluated(*asked(of=30)[::6]))
    assert "cadence" in seldom.changed, "what few steps ask about their batch is an evaluation"


def test_a_teachers_answers_may_be_made_ahead_of_the_same_training():
    teacher = [evaluation(n, of=["Teacher", False]) for n in (10, 20, 30)]
    ahead = evaluation(0, of=["Teacher", False], samples=120, multiset="all", forwards=2, results=2)
    asks = evaluated(*teacher, *asked(of=30))
    assert compare(asks, evaluated(ahead, *teacher)).verdict == "same"
    assert "cadence" in compare(asks, evaluated(ahead, *teacher[:1])).changed, "its own evaluations stay judged"
    (stray,) = altered(5, losses=(1.01,)).streams
    other = record(replace(stray, evaluations=(ahead, *teacher)))
    assert compare(asks, other).verdict == "changed", "and so does another training"
    never = compare(evaluated(*teacher), evaluated(ahead, *teacher))
    assert "cadence" in never.changed or "evaluation" in never.changed, "no step asked for these answers"
