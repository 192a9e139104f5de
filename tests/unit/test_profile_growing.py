"""Columns that grow block by block give back what was appended, whatever the sizes and types of the blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from trainflash.profile import growing
from trainflash.profile.growing import Growing, GrowingRows

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
TYPES = st.sampled_from([np.int8, np.int32, np.int64])
BLOCKS = st.lists(TYPES.flatmap(lambda kind: arrays.arrays(kind, st.integers(0, 40), elements=st.integers(-100, 100))), max_size=12)


@unhurried
@given(BLOCKS, st.integers(1, 9))
def test_all_blocks_come_back_in_order(blocks, rows):
    before, growing.SLAB_BYTES = growing.SLAB_BYTES, 8 * rows
    try:
        column = Growing()
        for block in blocks:
            column.append(block)
        assert len(column) == sum(map(len, blocks))
        whole = column.joined()
    finally:
        growing.SLAB_BYTES = before
    filled = [block for block in blocks if len(block)]
    assert whole.tolist() == [value for block in blocks for value in block.tolist()]
    assert whole.dtype == (np.result_type(*filled) if filled else np.int64)
    assert len(column) == 0 and column.joined(np.int8).tolist() == []


def test_the_whole_has_the_type_asked_for():
    column = Growing()
    column.append(np.arange(3, dtype=np.int64))
    assert column.joined(np.float64).dtype == np.float64


@unhurried
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=12))
def test_rows_come_back_whether_they_were_a_run_or_a_few(blocks):
    column, expected, first = GrowingRows(), [], 0
    for count, few in blocks:
        rows = np.arange(0, count, 2) if few else None
        column.append(first, count, rows)
        expected += (first + (np.arange(count) if rows is None else rows)).tolist()
        first += count
    found = column.joined()
    assert found.tolist() == expected and found.dtype == np.int32 and column.joined().tolist() == []
