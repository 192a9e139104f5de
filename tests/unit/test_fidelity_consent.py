"""What the owner agreed to hides nothing else: other orders and batches, programs without a seed, and what nobody can agree to."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from training_records import BATCH, EPOCH, check_of, checkpoint, clipped, record, rounded, row, shuffled, stream, update, weights

from trainflash.fidelity import compare
from trainflash.fidelity.record import Record
from trainflash.verdict import may_be_timed

ORDER = frozenset({"order"})


def by_chance(seed: int, *, loss: float = 1.0, gradient: float = 1.0, step: float = 1.0) -> Record:
    """A run of the usual program in an order of its own. The factors are damage: 1 is none."""
    draw = random.Random(seed)
    updates, sketch, lines = [], [1.0] * 8, []
    for epoch in range(3):
        places = draw.sample(range(1, EPOCH + 1), EPOCH)
        for place in places:
            n = len(updates) + 1
            noise = draw.gauss(0, 0.02)
            shown = update(place)
            updates.append(
                replace(
                    shown, n=n, losses=(loss * (1 / (1 + 0.1 * n) + noise),), grad_norm=gradient * math.exp(0.2 * noise) / (1 + 0.1 * n),
                    settings=update(n).settings, logs=int(n % EPOCH == 0), epoch=epoch + 1,
                )
            )  # fmt: skip
            sketch = [value + step * 0.01 * (1 + draw.gauss(0, 0.3)) for value in sketch]
            if n in (1, 2, 5, 10, 20, 30):
                lines.append(weights(n, sketch=list(sketch), digest=f"{seed}-{n}"))
    return record(stream(updates, weights=tuple(lines)))


def judged(candidate: Record):
    return compare(by_chance(0), candidate, controls=[by_chance(seed) for seed in range(1, 5)])


def test_another_order_of_the_same_training_asks_for_order_alone_and_passes_with_it():
    found = judged(by_chance(9))
    assert (found.verdict, found.changed) == ("changed", ("order",)), found.reasons
    for name in ("losses in distribution", "gradient norms in distribution", "weights in distribution"):
        assert check_of(found, name).ok, check_of(found, name)
    assert may_be_timed(found, allowed=ORDER)


@pytest.mark.parametrize(
    ("damage", "name"),
    [({"loss": 1.3}, "loss"), ({"gradient": 2.0}, "gradients"), ({"step": 3.0}, "weights"), ({"loss": math.nan}, "loss")],
)
def test_damage_does_not_hide_behind_another_order(damage, name):
    found = judged(by_chance(9, **damage))
    assert name in found.changed, found.reasons
    assert not may_be_timed(found, allowed=ORDER)


def test_without_other_orders_of_the_baseline_only_coarse_damage_is_seen_and_that_is_said():
    found = compare(by_chance(0), by_chance(9), controls=[])
    assert "finer differences were not judged" in check_of(found, "losses in distribution").evidence
    assert "weights in distribution" in found.not_judged
    assert "loss" in compare(by_chance(0), by_chance(9, loss=2.0), controls=[]).changed


def test_without_consent_nothing_more_than_the_order_is_asked_about():
    found = compare(by_chance(0), by_chance(9))
    assert found.changed == ("order",)
    assert "loss" in found.not_judged
    assert any("not judged: loss" in reason for reason in found.reasons)


def test_a_program_without_a_seed_is_compared_in_distribution_and_that_is_said():
    others = {"rerun": by_chance(1), "controls": [by_chance(seed) for seed in range(1, 5)]}
    found = compare(by_chance(0), by_chance(9), **others)
    assert (found.verdict, found.changed) == ("close", ("numerics",)), found.reasons
    assert "does not repeat itself" in found.reasons[0]
    assert "within the spread of 5 runs" in found.reasons[1]
    found = compare(by_chance(0), by_chance(9, gradient=2.0), **others)
    assert (found.verdict, found.changed) == ("changed", ("gradients",))


def test_initial_weights_that_nobody_seeds_are_not_taken_for_rounding_noise():
    apart = rounded(0.3, 1.0)
    assert compare(record(), apart, rerun=apart).verdict == "inconclusive"


def rebatched(**changes) -> Record:
    """Twice the batch, half the updates, over the same epochs; the learning rate changes after the same samples."""
    updates = []
    for n in range(1, 16):
        begin = ((n - 1) * 2 % EPOCH) * BATCH
        shown = tuple(range(begin, begin + 2 * BATCH))
        settings = ({"lr": 0.1 if n <= 5 else 0.05, "weight_decay": 1e-4, "momentum": 0.9, "values": 100},)
        updates.append(update(n, shown, settings=settings, epoch=(n - 1) // 5 + 1, logs=0, **changes))
    made = record().streams[0]
    parts = {
        "weights": tuple(weights(n) for n in (1, 2, 5, 10, 15)),
        "evaluations": tuple({**line, "n": line["n"] // 2} for line in made.evaluations),
        "checkpoints": tuple(checkpoint(n // 2) for n in (10, 20, 30)),
    }
    return record(stream(updates, **parts))


def test_a_larger_batch_over_the_same_samples_asks_for_batch_alone():
    found = compare(record(), rebatched())
    assert found.changed == ("batch",), found.reasons
    assert "15" in check_of(found, "updates").evidence
    assert check_of(found, "samples").ok and check_of(found, "order").ok and check_of(found, "evaluation cadence").ok


def test_a_larger_batch_with_scaled_rate_is_still_batch_and_with_another_decay_it_is_not():
    scaled = [replace(each, settings=({**each.settings[0], "lr": 2 * each.settings[0]["lr"]},)) for each in rebatched().streams[0].updates]
    found = compare(record(), record(replace(rebatched().streams[0], updates=tuple(scaled))))
    assert found.changed == ("batch",)
    assert "× 2" in check_of(found, "learning rate and weight decay").evidence
    decayed = [replace(each, settings=({**each.settings[0], "weight_decay": 0.0},)) for each in rebatched().streams[0].updates]
    assert "schedule" in compare(record(), record(replace(rebatched().streams[0], updates=tuple(decayed)))).changed


def test_a_larger_batch_that_loses_samples_is_fewer_updates():
    short = replace(rebatched().streams[0], updates=rebatched().streams[0].updates[:9])
    assert "updates" in compare(record(), record(short)).changed


def late(n: int = 20, **changes) -> Record:
    """The usual program until update `n`; from there on another learning rate."""
    moved = [update(k, **({"settings": ({**update(k).settings[0], "lr": 0.01},)} | changes if k >= n else {})) for k in range(1, 31)]
    return record(stream(moved))


def test_until_the_consented_change_everything_is_still_compared():
    found = compare(record(), late())
    assert found.changed == ("schedule",)
    assert check_of(found, "loss").ok
    assert "of the 19 updates before schedule changed" in check_of(found, "weights").evidence
    early = [replace(each, losses=(each.losses[0] + 0.1,)) if each.n == 4 else each for each in late().streams[0].updates]
    assert set(compare(record(), record(stream(early))).changed) == {"schedule", "loss"}


def test_nobody_can_agree_to_fewer_updates_or_another_loss():
    everything = frozenset({"updates", "loss", "order", "numerics", "weights", "failed"})
    for change in ("updates", "loss", "failed", "checkpoint", "work", "samples"):
        assert not may_be_timed(replace(compare(record(), rebatched()), changed=(change,)), allowed=everything)


def test_consent_without_any_evidence_that_it_still_learns_is_not_enough():
    found = compare(record(), shuffled())
    blind_to = (*found.not_judged, "first loss")
    blind = replace(
        found,
        checks=tuple(replace(check, ok=None) if check.name in blind_to else check for check in found.checks),
    )
    assert not may_be_timed(blind, allowed=ORDER)


def test_lost_clipping_is_seen_behind_another_order():
    found = compare(clipped(0.5), clipped(None))
    assert "clipping" in found.changed


def test_the_same_sample_is_known_by_its_key_when_augmentation_draws_it_anew():
    def drawn(places, salt):
        return [
            replace(
                update(n), rows=tuple(row(1000 * salt + 100 * n + each) for each in range(BATCH)),
                multiset=f"{salt}{n:x}", order=f"{salt}-{n}",
                moments=(0.1 * n * salt, 50.0 + 0.1 * salt, 0.3 * salt),
                keys=tuple(row(((place - 1) % EPOCH) * BATCH + each) for each in range(BATCH)),
            )
            for n, place in enumerate(places, start=1)
        ]  # fmt: skip

    forward = record(stream(drawn(range(1, 31), 1)))
    backward = record(stream(drawn([begin + place for begin in (0, 10, 20) for place in range(EPOCH, 0, -1)], 2)))
    assert compare(forward, backward).changed == ("order",)
    lost = record(stream(drawn([begin + 1 + place // 2 for begin in (0, 10, 20) for place in range(EPOCH)], 2)))
    assert "samples" in compare(forward, lost).changed


def test_checkpoints_that_come_later_than_the_run_went_are_left_open_where_the_owner_agrees_to_their_cadence():
    many = tuple(checkpoint(n) for n in (5, 10, 15, 20, 25))
    ours, theirs = (record(stream(checkpoints=made), whole=False) for made in (many, ()))
    assert "checkpoint" in compare(ours, theirs).changed
    agreed = compare(ours, theirs, agreed=frozenset({"cadence"}))
    assert agreed.changed == ("cadence",) and check_of(agreed, "checkpoint contents").ok is None
    ended = [replace(each, whole=True) for each in (ours, theirs)]
    assert "checkpoint" in compare(*ended, agreed=frozenset({"cadence"})).changed, "at its end it has written none"
