"""Interval algebra and nesting against brute force on random input."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflash.profile.analysis.intervals import (
    EMPTY,
    clipped,
    common,
    joined,
    overlapping_pairs,
    shared_out,
    span,
    union,
    without,
)
from trainflash.profile.analysis.nesting import nest, paths

END = 40
INTERVALS = st.lists(st.tuples(st.integers(0, END), st.integers(0, 12)), max_size=14)


def spans(pairs):
    starts = np.asarray([start for start, _ in pairs], np.int64)
    return union(starts, starts + np.asarray([length for _, length in pairs], np.int64))


def instants(pairs):
    return {at for start, length in pairs for at in range(start, start + length)}


def held(found):
    return {at for start, end in zip(found.start.tolist(), found.end.tolist(), strict=True) for at in range(start, end)}


@settings(max_examples=300, deadline=None)
@given(INTERVALS, INTERVALS, INTERVALS)
def test_sets_equal_a_count_of_instants(one, other, third):
    a, b, c = (spans(pairs) for pairs in (one, other, third))
    x, y, z = (instants(pairs) for pairs in (one, other, third))
    assert held(a) == x and a.total == len(x)
    assert held(joined([a, b, c])) == x | y | z
    assert held(common(a, b)) == x & y
    assert held(without(a, b)) == x - y
    assert held(clipped(a, (5, 20))) == {at for at in x if 5 <= at < 20}
    assert (a.end > a.start).all() and (a.start[1:] > a.end[:-1]).all(), "neither empty nor touching"
    edges = np.arange(0, END + 15)
    assert a.contains(edges).tolist() == [at in x for at in edges]
    assert a.before(edges).tolist() == [sum(at < edge for at in x) for edge in edges]
    assert a.inside(np.asarray([3]), np.asarray([17])).tolist() == [sum(3 <= at < 17 for at in x)]


@settings(max_examples=300, deadline=None)
@given(INTERVALS, INTERVALS, INTERVALS)
def test_sharing_out_gives_each_instant_to_the_first_claim(one, other, third):
    window = span((4, 45))
    parts = shared_out(window, [spans(pairs) for pairs in (one, other, third)])
    left = set(range(4, 45))
    for part, pairs in zip(parts, (one, other, third), strict=False):
        mine = left & instants(pairs)
        assert held(part) == mine
        left -= mine
    assert held(parts[-1]) == left
    assert sum(part.total for part in parts) == window.total


@settings(max_examples=200, deadline=None)
@given(INTERVALS, INTERVALS)
def test_pairs_are_all_that_meet(one, other):
    starts = np.asarray([start for start, _ in one], np.int64)
    ends = starts + np.asarray([length for _, length in one], np.int64)
    b = spans(other)
    found = {
        (left, right): length for left, right, length in zip(*(each.tolist() for each in overlapping_pairs(starts, ends, b)), strict=True)
    }
    expected = {}
    for left in range(len(one)):
        for right in range(len(b)):
            length = min(ends[left], b.end[right]) - max(starts[left], b.start[right])
            if length > 0:
                expected[left, right] = length
    assert found == expected


def test_nothing_is_a_set():
    assert EMPTY.total == 0 and len(union(np.empty(0), np.empty(0))) == 0
    assert EMPTY.contains(np.asarray([1])).tolist() == [False] and EMPTY.before(np.asarray([1])).tolist() == [0]
    assert shared_out(EMPTY, [EMPTY])[0].total == 0


def test_64_bit_nanoseconds_are_exact():
    start = np.asarray([1_711_964_646_000_000_001], np.int64)
    assert union(start, start + 1).total == 1


@st.composite
def trees(draw, start=0, end=60, depth=0):
    """Well-nested events as (start, end) with children inside, and gaps and touching siblings between."""
    events = []
    at = start
    while at < end and draw(st.booleans()):
        begin = draw(st.integers(at, end - 1))
        stop = draw(st.integers(begin + 1, end))
        events.append((begin, stop, depth))
        if depth < 4:
            events += draw(trees(begin, stop, depth + 1))
        at = stop
    return events


def columns(events):
    ordered = sorted(events, key=lambda event: (event[0], -event[1], event[2]))
    start = np.asarray([event[0] for event in ordered], np.int64)
    return ordered, start, np.asarray([event[1] for event in ordered], np.int64) - start


@settings(max_examples=300, deadline=None)
@given(trees(), trees())
def test_nests_equal_brute_force(one, other):
    (first, start1, long1), (second, start2, long2) = columns(one), columns(other)
    start, duration = np.concatenate((start1, start2)), np.concatenate((long1, long2))
    track = np.repeat([0, 3], [len(first), len(second)])
    tree = nest(start, duration, track)
    for offset, events in ((0, first), (len(first), second)):
        for place, (begin, stop, depth) in enumerate(events):
            assert tree.depth[offset + place] == depth
            above = [at for at, each in enumerate(events) if each[0] <= begin and each[1] >= stop and each[2] == depth - 1]
            assert tree.parent[offset + place] == (offset + above[-1] if above else -1)
            below = sum(each[1] - each[0] for at, each in enumerate(events) if tree.parent[offset + at] == offset + place)
            assert tree.own_ns[offset + place] == stop - begin - below
    at = np.arange(0, 62)
    inner = tree.innermost(np.full(len(at), 3), at)
    for instant, found in zip(at.tolist(), inner.tolist(), strict=True):
        open_now = [place for place, each in enumerate(second) if each[0] <= instant < each[1]]
        deepest = max(open_now, key=lambda place: second[place][2]) if open_now else None
        assert found == (-1 if deepest is None else len(first) + deepest)
    blocks = list(tree.segments(most=2))
    begin, stop, event = (np.concatenate([block[column] for block in blocks] or [np.empty(0, np.int64)]) for column in range(3))
    assert int((stop - begin).sum()) == union(start1, start1 + long1).total + union(start2, start2 + long2).total
    owned = np.zeros(len(tree), np.int64)
    np.add.at(owned, event, stop - begin)
    assert owned.tolist() == tree.own_ns.tolist()


def test_events_that_overlap_without_nesting_lose_only_what_lies_inside():
    tree = nest(np.asarray([0, 5, 11]), np.asarray([10, 10, 1]), np.zeros(3, np.int64))
    assert tree.parent.tolist()[:2] == [-1, 0]
    assert tree.own_ns.tolist()[0] == 5 and (tree.own_ns >= 0).all()


def test_events_that_overlap_belong_to_the_innermost_that_is_open():
    """A[0,40) B[5,20) C[10,30) D[25,28): when D begins B is over and C still open."""
    tree = nest(np.asarray([0, 5, 10, 25]), np.asarray([40, 15, 20, 3]), np.zeros(4, np.int64))
    assert tree.parent.tolist() == [-1, 0, 1, 2] and tree.own_ns.tolist()[2] == 17
    assert tree.innermost(np.zeros(2, np.int64), np.asarray([29, 35])).tolist() == [2, 0]


def test_paths_name_everything_around():
    # outer(0-10) > inner(1-4) > leaf(2-3); outer > inner(5-6); a second outer(20-30) > inner(21-22)
    start = np.asarray([0, 1, 2, 5, 20, 21])
    duration = np.asarray([10, 3, 1, 1, 10, 1])
    found = paths(nest(start, duration, np.zeros(6, np.int64)), np.asarray([0, 1, 2, 1, 0, 1]))
    assert len(found.parent) == 3
    assert found.of[1] == found.of[3] == found.of[5] and found.of[0] == found.of[4]
    assert found.rolled_up(np.asarray([1, 1, 1])).tolist() == [3, 2, 1]
    assert found.depth().tolist() == [0, 1, 2]
