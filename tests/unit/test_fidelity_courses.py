"""Gradients and steps as vectors: what is done wrongly at one update stands out there, drift does not."""

from __future__ import annotations

import math
import random
import struct
from dataclasses import replace

import pytest
from training_records import check_of, record, stream, weights

from trainflash.fidelity import compare
from trainflash.fidelity.judgement import only_drifts

WIDTH = 32


def packed(values) -> str:
    return struct.pack(f"<{WIDTH}f", *values).hex()


def vectors(kind: str, far, **changes):
    """The usual program, whose vector of each update `n` is turned by the relative distance `far(n)`; its loss with it, by little."""
    updates = []
    for each in stream().updates:
        draw = random.Random(each.n)
        plain = [draw.gauss(0, 1) for _ in range(WIDTH)]
        off = [draw.gauss(0, 1) for _ in range(WIDTH)]
        scale = far(each.n) * math.hypot(*plain) / math.hypot(*off)
        turned = packed(value + scale * other for value, other in zip(plain, off, strict=True))
        loss = each.losses[0] * (1 + (1e-7 if far(each.n) else 0.0))
        updates.append(replace(each, losses=(loss,), **{"gradient": packed(plain), "step": packed(plain), kind: turned}, **changes))
    return record(stream(updates))


def judged(kind: str, far, nudge=lambda n: 1e-6, **changes):
    noise = {"rerun": vectors(kind, lambda n: 0.0, **changes), "nudged": vectors(kind, nudge, **changes)}
    return compare(vectors(kind, lambda n: 0.0, **changes), vectors(kind, far, **changes), **noise)


@pytest.mark.parametrize(("kind", "change"), [("gradient", "gradients"), ("step", "weights")])
@pytest.mark.parametrize("before", [0.0, 1e-6])
def test_a_vector_that_is_turned_at_one_late_update_is_named_there(kind, change, before):
    found = judged(kind, lambda n: 0.3 if n == 22 else before)
    assert (found.verdict, found.changed) == ("changed", (change,))
    assert "in update 22," in check_of(found, f"{kind} vectors").evidence


@pytest.mark.parametrize("kind", ["gradient", "step"])
def test_rounding_of_the_size_of_the_nudge_is_close(kind):
    found = judged(kind, lambda n: 2e-2 if n > 1 else 0.0, nudge=lambda n: 1e-2, autocast=("cpu:bfloat16",))
    assert found.verdict == "close"
    assert check_of(found, f"{kind} vectors").ok


def test_a_fault_in_a_program_that_amplifies_rounding_is_held_against_the_noise_of_its_first_updates():
    found = judged("gradient", lambda n: 0.3 if n >= 22 else 0.0, nudge=lambda n: min(0.4, 1e-3 * 2**n))
    assert check_of(found, "gradient vectors").ok is False


def test_a_gradient_that_counts_twice_is_more_than_any_noise_explains():
    assert check_of(judged("gradient", lambda n: 0.7 if n == 22 else 0.05, nudge=lambda n: 0.1), "gradient vectors").ok is False


def test_drift_that_grows_from_one_update_to_the_next_is_no_jump():
    """As that of a network with kinks, whose nudge may show nothing of it."""
    assert check_of(judged("gradient", lambda n: min(1.3, 1e-6 * 2**n)), "gradient vectors").ok


def test_where_the_noise_is_as_large_as_the_vectors_nothing_is_held_against_the_candidate():
    found = judged("gradient", lambda n: 0.9, nudge=lambda n: 0.3)
    assert all(check.name != "gradient vectors" for check in found.checks)


def test_without_a_nudge_only_the_first_differences_are_judged():
    plain = vectors("gradient", lambda n: 0.0)
    assert check_of(compare(plain, vectors("gradient", lambda n: 0.3 if n == 9 else 1e-6)), "gradient vectors").ok
    assert check_of(compare(plain, vectors("gradient", lambda n: 0.3 if n == 2 else 1e-6)), "gradient vectors").ok is False


def test_what_almost_vanishes_is_measured_by_what_is_usual():
    """Where all samples of a batch are learnt, what is left of the gradient may be rounding alone."""

    def vanishing(far: float):
        updates = [
            replace(each, gradient=packed([1e-9 * (1 + far)] * WIDTH)) if each.n == 9 else each
            for each in vectors("gradient", lambda n: 1e-7 if far else 0.0).streams[0].updates
        ]
        return record(stream(updates))

    found = compare(vanishing(0.0), vanishing(0.9), rerun=vanishing(0.0), nudged=vanishing(0.0))
    assert check_of(found, "gradient vectors").ok


def test_vectors_that_only_one_side_has_are_not_compared():
    found = compare(record(), vectors("gradient", lambda n: 0.3), rerun=record(), nudged=record())
    assert all("vectors" not in check.name for check in found.checks)


def test_a_training_that_is_bitwise_the_same_has_no_other_vectors():
    plain = vectors("gradient", lambda n: 0.0)
    other = [replace(each, gradient=packed(range(WIDTH))) for each in plain.streams[0].updates]
    assert compare(plain, record(stream(other))).verdict == "same"


def kinked(far, shift: float = 0.0):
    """The usual program, whose gradients are turned by `far(n)` and whose weights end `shift` away."""
    (only,) = vectors("gradient", far).streams
    return record(replace(only, weights=tuple(weights(n, shift) for n in (1, 2, 5, 10, 20, 30))))


@pytest.mark.parametrize(
    ("far", "shift", "drifts"),
    [
        (lambda n: 1e-6 * 1.4**n, 0.01, True),
        (lambda n: 3e-4, 0.01, False),  # more than rounding from the beginning
        (lambda n: 0.0 if n < 12 else 1e-6, 0.01, False),  # begins later
        (lambda n: 0.3 if n == 22 else 1e-6, 0.01, False),  # stands out
        (lambda n: 1e-6, 1e-9, False),  # ends near
    ],
)
def test_only_what_begins_as_rounding_and_stands_out_nowhere_asks_for_more_nudges(far, shift, drifts):
    plain, nudged = kinked(lambda n: 0.0), kinked(lambda n: 1e-6, 1e-7)
    found = compare(plain, kinked(far, shift), rerun=plain, nudged=nudged)
    assert only_drifts(found, plain, kinked(far, shift), nudged) is drifts
    assert not only_drifts(found, plain, kinked(far, shift), None)


def test_a_nudge_that_meets_a_kink_shows_how_far_rounding_carries_the_training():
    plain, nudged, other = kinked(lambda n: 0.0), kinked(lambda n: 1e-6, 1e-7), kinked(lambda n: 1e-6 * 1.4**n, 0.004)
    candidate = kinked(lambda n: 1e-6 * 1.4**n, 0.01)
    assert "weights" in compare(plain, candidate, rerun=plain, nudged=nudged).changed
    assert compare(plain, candidate, rerun=plain, nudged=nudged, nudges=[nudged, other]).verdict == "close"
    assert "weights" in compare(plain, candidate, rerun=plain, nudged=nudged, nudges=[nudged]).changed


def handed_over(far, **changes):
    """A candidate that hands its samples over otherwise: in twice as many portions, with other targets."""
    plain = vectors("gradient", lambda n: 0.0)
    other = vectors("gradient", far)
    updates = [
        replace(
            each, samples=2 * each.samples, rows=None, multiset=f"{each.n:x}", order="x", targets="other", shapes=("float32[8]",), **changes
        )
        for each in other.streams[0].updates
    ]
    noise = {"rerun": plain, "nudged": vectors("gradient", lambda n: 1e-6)}
    return compare(plain, record(stream(updates)), **noise)


def test_updates_with_the_same_gradients_are_the_same_however_samples_are_handed_over():
    found = handed_over(lambda n: 1e-6)
    assert (found.verdict, found.changed) == ("close", ("numerics",))
    assert "the same gradient" in check_of(found, "samples").evidence


@pytest.mark.parametrize("far", [lambda n: 3e-2, lambda n: 3e-2 if n == 28 else 1e-6])
def test_other_samples_with_other_gradients_are_named(far):
    found = handed_over(far)
    assert {"batch", "shape", "samples"} <= set(found.changed)


def test_what_no_gradient_shows_is_not_explained_by_gradients():
    assert "schedule" in handed_over(lambda n: 1e-6, settings=({"lr": 0.2, "weight_decay": 1e-4, "momentum": 0.9, "values": 100},)).changed


@pytest.mark.parametrize(("far", "changed"), [(1e-3, ("precision",)), (2e-5, ("numerics",))])
def test_a_first_gradient_that_rounding_does_not_explain_was_computed_in_a_lower_precision(far, changed):
    found = judged("gradient", lambda n: far, nudge=lambda n: 1e-7)
    assert found.changed == changed
    assert check_of(found, "precision of computing").ok is (changed == ("numerics",))
