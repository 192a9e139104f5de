"""Signed sums tell how far two lists of tensors are apart, wherever the values lie, and draw nothing."""

from __future__ import annotations

import math
import struct

import pytest
import torch
from probe_events import part

projected = part("record.projected")


def sums(tensors):
    return projected.projected(enumerate(tensors))[1]


def drawn(seed, *shapes):
    source = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=source) for shape in shapes]


@pytest.mark.parametrize("shapes", [[(90, 70), (70,)], [(3,)] * 400, [(700_000,), (5, 5)]])
def test_their_distance_is_about_that_of_the_values(shapes):
    shares = []
    for seed in range(8):
        plain, off = drawn(seed, *shapes), drawn(100 + seed, *shapes)
        apart = 1e-3 * math.sqrt(sum(float(each.double().square().sum()) for each in off))
        far = math.dist(sums(plain), sums([a + 1e-3 * b for a, b in zip(plain, off, strict=True)]))
        shares.append(far / apart)
    assert math.sqrt(sum(share**2 for share in shares) / len(shares)) == pytest.approx(1, abs=0.25)
    assert all(0.4 < share < 1.7 for share in shares)


def test_the_sum_of_squares_comes_along():
    plain = drawn(0, (300, 7), (5,))
    assert projected.projected(enumerate(plain))[0] == pytest.approx(sum(float(each.double().square().sum()) for each in plain))


def test_equal_values_have_equal_sums_in_any_layout_and_no_random_stream_moves():
    (images,) = drawn(0, (4, 3, 9, 9))
    before = torch.get_rng_state()
    assert sums([images]) == sums([images.to(memory_format=torch.channels_last)])
    assert torch.equal(before, torch.get_rng_state())


def test_values_that_change_places_change_the_sums():
    (plain,) = drawn(0, (600_000,))
    assert math.dist(sums([plain]), sums([plain.roll(1 << 18)])) > 0.5 * plain.norm()
    assert math.dist(sums([plain, plain * 0]), sums([plain * 0, plain])) > 0.5 * plain.norm()


def test_what_is_not_finite_is_packed_too():
    values = struct.unpack("<32f", bytes.fromhex(projected.packed([math.inf, 1e300, math.nan, 1.0] + [0.0] * 28)))
    assert values[0] == values[1] == math.inf and math.isnan(values[2]) and values[3] == 1.0


def test_steps_are_what_changed_since_the_update_before():
    steps, (weights,) = projected.Steps(), drawn(0, (50,))
    found = []
    for _ in range(2):
        steps.begin([weights])
        weights += 1.0
        found.append(steps.end([weights]))
    assert struct.unpack("<32f", bytes.fromhex(found[0])) == pytest.approx(struct.unpack("<32f", bytes.fromhex(found[1])), abs=1e-5)
    assert any(struct.unpack("<32f", bytes.fromhex(found[0])))


def test_a_model_that_is_too_large_for_the_processor_has_no_steps(monkeypatch):
    monkeypatch.setattr(projected, "_MOST", 10)
    steps, (weights,) = projected.Steps(), drawn(0, (50,))
    steps.begin([weights])
    assert steps.end([weights]) is None


def test_sums_at_each_tensors_own_scale_are_as_far_apart_as_the_tensors_are():
    plain = drawn(0, (40, 30), (8,), (3,))
    small = [plain[0], plain[1] * (1 + 1e-4 * torch.tensor([1.0, -1.0] * 4)), plain[2]]
    zero = torch.zeros(5)
    ours, theirs = (struct.unpack("<32d", bytes.fromhex(projected.scaled([*each, zero]))) for each in (plain, small))
    assert math.dist(ours, theirs) == pytest.approx(1e-4, rel=0.6)
    assert projected.scaled(plain) == projected.scaled([each.clone() for each in plain])
