"""What two runs of the baseline do not share is excused in the candidate, but not that it sees fewer of the data."""

from __future__ import annotations

from training_records import BATCH, check_of, record, stream, update

from trainflash.fidelity import compare
from trainflash.fidelity.record import Record


def drawn(start: int, of: int) -> Record:
    """30 updates with samples drawn from `of`, without a seed: each run begins elsewhere."""
    shown = [tuple(1000 * start + (BATCH * n + each) % of for each in range(BATCH)) for n in range(30)]
    return record(stream([update(n, rows, epoch=1, losses=(1 / n + start / 1e4,)) for n, rows in enumerate(shown, start=1)]))


def test_other_samples_of_each_run_are_chance_and_fewer_different_ones_are_not():
    first, second = drawn(1, 4000), drawn(2, 4000)
    honest, narrow = drawn(3, 4000), drawn(4, 20)
    assert check_of(compare(first, honest, rerun=second), "samples").ok is None
    found = compare(first, narrow, rerun=second)
    assert "samples" in found.changed
    assert check_of(found, "samples").evidence == "distinct samples 120 → 20; in a second run of the baseline 120"
