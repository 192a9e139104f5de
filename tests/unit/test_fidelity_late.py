"""Differences that begin late. Rounding begins small, with the work that is done otherwise; what comes before it, it does not explain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from training_records import check_of, evaluation, record, rounded, stream, update, weights

from trainflash.fidelity import compare

CHAOTIC = {"rerun": record(), "nudged": rounded(2.8e-3, 1e-2)}  # such a program's own noise hides what a few late updates do


def from_update(begin: int, loss: float = 0.0, norm: float = 0.0, shift: float = 0.0, **changes):
    """The usual program, from update `begin` on with losses and gradient norms that are so far away, relatively."""
    updates = [
        replace(each, losses=(each.losses[0] * (1 + loss),), grad_norm=each.grad_norm * (1 + norm), **changes) if each.n >= begin else each
        for each in stream().updates
    ]
    return record(stream(updates, weights=tuple(weights(n, shift if n >= begin else 0.0) for n in (1, 2, 5, 10, 20, 30))))


def test_a_part_of_the_loss_that_is_lost_late_is_no_rounding_even_in_a_program_that_amplifies_it():
    found = compare(record(), from_update(22, loss=3e-4, norm=1e-4, shift=1e-3), **CHAOTIC)
    assert found.verdict == "changed"
    assert "after 21 that are bitwise the same" in check_of(found, "first difference").evidence
    assert compare(record(), from_update(22, loss=1e-7, norm=1e-7, shift=1e-3), **CHAOTIC).verdict == "close"


def test_a_gradient_that_is_lost_late_is_seen_where_it_is_lost():
    found = compare(record(), from_update(22, loss=1e-7, norm=0.05), **CHAOTIC)
    assert found.verdict == "changed"
    assert check_of(found, "gradients").ok is False


def test_late_rounding_under_autocast_may_be_that_of_its_type():
    coarse = [update(n, autocast=("cpu:bfloat16",)) for n in range(1, 31)]
    late = from_update(22, loss=3e-4, autocast=("cpu:bfloat16",)).streams[0].updates
    mixed = [old if old.n < 22 else new for old, new in zip(coarse, late, strict=True)]
    noise = {"rerun": record(stream(coarse)), "nudged": record(stream(coarse))}
    found = compare(record(stream(coarse)), record(stream(mixed)), **noise)
    assert check_of(found, "first difference").ok


def test_the_second_loss_is_where_an_optimizer_that_rounds_otherwise_shows():
    found = compare(record(), from_update(2, loss=1e-4, shift=1e-8), rerun=record(), nudged=rounded(1e-3, 1e-3))
    assert all(check.name != "first difference" for check in found.checks)


@pytest.mark.parametrize("begin, named", [(15, True), (1, False)])
def test_the_nudge_explains_other_samples_only_after_something_has_begun_to_differ(begin, named):
    """As in learning by trial, where other weights see other data."""

    def seen(first: int, far: float):
        other = {n: {"multiset": f"{n:x}0", "order": "x", "rows": None, "moments": (9.9, 9.9, 9.9)} for n in range(first, 31)}
        updates = [
            replace(each, losses=(each.losses[0] * (1 + far),), **other[each.n]) if each.n in other else each for each in stream().updates
        ]
        return record(stream(updates))

    found = compare(record(), seen(begin, 1e-7), rerun=record(), nudged=seen(1, 1e-7))
    assert bool({"samples", "order"} & set(found.changed)) is named


def test_the_nudge_excuses_no_other_evaluation_after_a_training_that_is_bitwise_the_same():
    def evaluated(seen: str):
        return stream(evaluations=tuple(evaluation(n, multiset=seen, samples=32 - len(seen)) for n in (10, 20)))

    nudged = replace(rounded(1e-9, 1e-9).streams[0], evaluations=evaluated("c").evaluations)
    found = compare(record(evaluated("a")), record(evaluated("bb")), rerun=record(evaluated("a")), nudged=record(nudged))
    assert "evaluation" in found.changed
