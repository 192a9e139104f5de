"""Batches that each step draws anew: other draws of the same data set are another order; anything else is other samples."""

from __future__ import annotations

import random

import pytest
from training_records import check_of, record, row, stream, update, weights

from trainflash.fidelity import compare
from trainflash.fidelity.record import Record

DATA, BATCH, STEPS = 480, 8, 120


def run(draws: list[list[int]], *, passes=lambda n: n, content=lambda key: key, target=lambda key: 10_000 + key, salt=0) -> Record:
    """A run of the usual program on these samples; `passes` is the number of the loader's pass in each update."""
    made = [
        update(
            n,
            tuple(content(key) for key in keys),
            keys=tuple(f"{key:016x}" for key in keys),
            target_rows=tuple(row(target(key)) for key in keys),
            epoch=passes(n),
            losses=(1.0 / n + 1e-3 * salt,),
        )
        for n, keys in enumerate(draws, start=1)
    ]
    return record(stream(made, weights=tuple(weights(n, digest=f"{salt}-{n}") for n in (1, 2, 5))))


def anew(seed: int, places=range(DATA), batch: int = BATCH) -> list[list[int]]:
    draw = random.Random(seed)
    return [draw.sample(list(places), batch) for _ in range(STEPS)]


def kept(seed: int, places=range(DATA), shuffle: bool = True) -> list[list[int]]:
    draw, found = random.Random(seed), []
    while len(found) < STEPS:
        order = draw.sample(list(places), len(places)) if shuffle else list(places)
        found += [order[at : at + BATCH] for at in range(0, len(order) - BATCH + 1, BATCH)]
    return found[:STEPS]


def samples(baseline: Record, candidate: Record):
    return check_of(compare(baseline, candidate), "samples")


@pytest.mark.parametrize("seed", range(8))
def test_a_kept_iterator_draws_of_the_same_data_in_another_order(seed):
    found = compare(run(anew(seed)), run(kept(seed + 100), passes=lambda n: 1 + n // 60, salt=1))
    assert found.changed == ("order",), found.reasons
    assert "draws its samples anew" in check_of(found, "samples").evidence


@pytest.mark.parametrize("seed", range(8))
def test_so_does_another_seed(seed):
    assert compare(run(anew(seed)), run(anew(seed + 100), salt=1)).changed == ("order",)


HALF = range(DATA // 2)


@pytest.mark.parametrize(
    ("draws", "reason"),
    [
        (kept(1, HALF), "other parts of the data set"),
        (anew(1, HALF), "other parts of the data set"),
        (kept(1, range(0, DATA, 2)), "at every 2th place"),
        (kept(1, range(0, DATA, 7)), "at every 7th place"),
        (kept(1, shuffle=False), "batches of the same samples"),
        (anew(1)[:1] * STEPS, "distinct samples"),
        (anew(1)[:20] * (STEPS // 20), "batches of the same samples"),
    ],
    ids=["half, kept", "half, anew", "every second", "every seventh", "not shuffled", "one batch", "twenty batches"],
)
def test_a_part_of_the_data_or_its_own_order_is_other_samples(draws, reason):
    found = samples(run(anew(0)), run(draws, passes=lambda n: 1 + n // 60, salt=1))
    assert found.ok is False and reason in found.evidence


def some(share: float) -> list[int]:
    return sorted(random.Random(5).sample(range(DATA), int(share * DATA)))


@pytest.mark.parametrize(
    ("draws", "reason"),
    [
        ([batch for batch in kept(1)[: STEPS // 2] for _ in range(2)], "come again within"),
        ([batch for batch in anew(1)[: STEPS // 4] for _ in range(4)], "come again within"),
        (kept(1)[: DATA // BATCH] * 2, "batches of the same samples"),
        ([2 * batch[: BATCH // 2] for batch in kept(1)], "twice in one batch"),
        (kept(1, some(0.9)), "the first sample comes again after"),
        (kept(1, some(0.7)), "the first sample comes again after"),
        (kept(1, [key for key in range(DATA) if key % 11]), "the first sample comes again after"),
        (anew(1, some(0.8)), "distinct samples"),
    ],
    ids=["each twice", "each four times", "the first pass again", "half a batch", "90 %", "70 %", "no eleventh", "80 %, anew"],
)
def test_samples_that_are_used_again_or_never_come_are_other_samples(draws, reason):
    found = samples(run(anew(0)), run(draws, passes=lambda n: 1 + n // 60, salt=1))
    assert found.ok is False and reason in found.evidence, found.evidence


@pytest.mark.parametrize("size", [60, 200, 1000, 3000])
@pytest.mark.parametrize("seed", range(4))
def test_honest_draws_of_any_data_set_are_another_order(size, seed):
    baseline = run(anew(seed, range(size)))
    for draws in (kept(seed + 50, range(size)), anew(seed + 50, range(size))):
        found = samples(baseline, run(draws, passes=lambda n: 1 + n // 60, salt=1))
        assert found.ok, found.evidence


def test_other_values_or_targets_under_the_same_key_are_other_samples():
    plain = run(anew(0))
    for changed in ({"content": lambda key: key + 5 * (key % 9 == 0)}, {"target": lambda key: 10_000 + key // 2}):
        found = samples(plain, run(kept(1), salt=1, **changed))
        assert found.ok is False and "other values or targets" in found.evidence


@pytest.mark.parametrize(
    "baseline",
    [
        run(kept(0), passes=lambda n: 1 + n // 60),  # goes through the data set in passes
        run(kept(0), passes=lambda n: 1 + n // 2),  # in short ones
        run(anew(0), content=lambda key: random.randrange(10**9)),  # draws each sample anew
        run([[key * 10**9 for key in keys] for keys in anew(0)]),  # its keys are no places
    ],
    ids=["passes", "short passes", "augmented", "digests"],
)
def test_where_keys_cannot_tell_other_samples_stay_other_samples(baseline):
    other = run(anew(7, range(DATA, 2 * DATA)), salt=1)
    assert samples(baseline, other).ok is False and "anew" not in samples(baseline, other).evidence


def test_of_a_data_set_so_large_that_no_sample_comes_twice_nothing_is_known():
    large = [run(anew(seed, range(10**6)), salt=seed) for seed in (0, 1)]
    assert samples(*large).ok is False
