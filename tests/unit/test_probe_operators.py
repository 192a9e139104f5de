"""Figures of a recorded step: what recording itself adds makes no operator a large one."""

from __future__ import annotations

import itertools

import pytest
from probe_events import part

operators = part("facts.operators")
INNER = 8  # operators that the outer one calls


class Mark:
    """One mark of torch's recorder: an operator begins or ends, at a time in µs."""

    def __init__(self, kind: str, handle: int, at_us: float, name: str = "") -> None:
        self._kind, self._handle, self.at_us, self._name = kind, handle, at_us, name

    def kind(self):
        return self._kind

    def name(self):
        return self._name

    def handle(self):
        return self._handle

    def cpu_elapsed_us(self, other):
        return other.at_us - self.at_us

    def sequence_nr(self):
        return -1


def recorded(outer_us: float, inner: int = INNER, name: str = "aten::index") -> list[Mark]:
    """An operator of that length, which calls others one after the other."""
    number = itertools.count()
    outer, each = next(number), outer_us / (inner + 1)
    marks = [Mark("push", outer, 0.0, name)]
    for place in range(inner):
        called = next(number)
        marks += [Mark("push", called, each * (place + 0.5), "aten::empty"), Mark("pop", called, each * (place + 1.4))]
    return [*marks, Mark("pop", outer, outer_us)]


@pytest.mark.parametrize(
    ("outer_us", "inner", "small_us"),
    [
        (12.0, INNER, 12.0),
        (27.0, INNER, 27.0),  # 6 µs when nothing is recorded
        (27.0, 0, 0.0),
        (100.0, INNER, INNER * operators.RECORDED_NS / 1000),
    ],
    ids=["small", "small but for recording", "large", "large, and recorded"],
)
def test_what_recording_adds_is_no_work(outer_us, inner, small_us):
    figures = operators.read([recorded(outer_us, inner)], [], -1.0)
    assert (figures["ops"], figures["op_ns"]) == (1, pytest.approx(1000 * outer_us, rel=0.001))
    assert figures["small_ns"] == pytest.approx(1000 * small_us, rel=0.001)


def test_the_gradient_of_a_single_row_is_the_loops_doing():
    figures = operators.read([recorded(100.0, 0, "aten::select_backward")], [], -1.0)
    assert figures["small_ns"] == figures["op_ns"]
