"""The device's timeline of one process: what it did between the phase boundaries, on the host's clock, and who waited for it.

A boundary has two times: when the host recorded its event, and when the device reached it. The device's clock has another origin, which
lies between two bounds: no event is reached before it was recorded, and none was seen complete before it was reached. Both bounds are taken
over windows and carried to the others with an allowance for drift, and the middle between them is used.

Assumed: work of a phase is queued on the stream that is current at its boundaries. The stream with most boundaries is the program's; on
others only what lies between two neighbouring boundaries counts. A span holds the device's short gaps between kernels. A launch that blocks
because the driver's queue is full is not seen as a wait; the lag of the device behind the host tells of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainflash.schema.runs import PHASES
from trainflash.trace.accounting import Spans, step_of
from trainflash.trace.facts import Facts
from trainflash.trace.model import DeviceTimeline

WAIT, WAITED, SEEN, DROPPED = 8, 9, 10, 11  # codes of the probe's device file
WINDOW_NS = 1_000_000_000
DRIFT = 50e-6  # two free-running quartz clocks differ by no more (data sheets say ±20 to ±50 ppm)
NEAR_NS = 50_000  # a host that comes back that close to the end of the device's work waited for it: launch and return cost some 10 µs
UNSURE_NS = 250_000  # with clocks aligned no better than that, meeting the end of the device's work proves nothing
H2D, DATA = PHASES.index("H2D"), PHASES.index("Data")
WORKING = tuple(PHASES.index(name) for name in ("H2D", "Fwd", "Bwd", "Opt", "Eval"))  # the others are mostly host work


@dataclass(frozen=True)
class Marks:
    """Boundaries with an event, in order of the host's recording, and calls that blocked; `device_ns` has an origin of its own."""

    host_ns: np.ndarray
    device_ns: np.ndarray
    seen_ns: np.ndarray  # host time at which it was known to be complete
    code: np.ndarray
    stream: np.ndarray
    wait_from_ns: np.ndarray
    wait_to_ns: np.ndarray
    dropped: int


def read(run_dir: Path, facts: Facts, base_ns: int) -> Marks | None:
    """The device file of one process; None where there is none. A half-written record at its end is dropped."""
    told = facts.newest("device_marks")
    if not told:
        return None
    path = Path(run_dir) / Path(str(told["file"])).name
    try:
        raw = np.fromfile(path, dtype="<u8", count=path.stat().st_size // 16 * 2)
    except OSError:
        return None
    first, second = raw[0::2], raw[1::2]
    code, number = (first & 0xFFF).astype(np.int64), (first >> 12).astype(np.int64)
    value = (second >> 12).astype(np.int64)
    kept = (code == WAIT) | (code > DROPPED)
    at = np.flatnonzero(kept)
    seen = np.flatnonzero(code == SEEN)
    after = np.searchsorted(seen, at)
    at, after = at[after < len(seen)], after[after < len(seen)]
    order = at[np.argsort(number[at], kind="stable")]
    seen_ns = np.zeros(len(code), dtype=np.int64)
    seen_ns[at] = number[seen[after]]
    waited = np.flatnonzero(code == WAITED)
    dropped = np.flatnonzero(code == DROPPED)
    return Marks(
        host_ns=number[order] + base_ns,
        device_ns=value[order] - int(told["bias"]),
        seen_ns=seen_ns[order] + base_ns,
        code=code[order],
        stream=(second & 0xFFF).astype(np.int64)[order],
        wait_from_ns=number[waited] + base_ns,
        wait_to_ns=value[waited] + base_ns,
        dropped=int(number[dropped[-1]]) if len(dropped) else 0,
    )


def timeline(marks: Marks, host: Spans, step_start_ns: np.ndarray, boundary_code: int) -> DeviceTimeline | None:
    """The device's timeline; None for fewer than two boundaries."""
    if len(marks.host_ns) < 2 or not len(host.t_ns):
        return None
    origin, half = clock_origin(marks.host_ns, marks.device_ns, marks.seen_ns)
    reached = marks.device_ns + origin
    own_stream = marks.stream == _own_stream(marks.stream)
    reached[own_stream] = np.maximum.accumulate(reached[own_stream])
    begin, end, main = neighbours(marks.stream)
    start_ns, end_ns = reached[begin], np.maximum(reached[begin], reached[end])
    queued_ns, left_ns = marks.host_ns[begin], marks.host_ns[end]
    phase = _phase_at(host, queued_ns)
    waits = _waits(marks, start_ns[main], queued_ns[main], left_ns[main], phase[main], half)
    wait_from, wait_to = _inside_one_phase(host, *waits)
    own = _phase_at(host, wait_from)
    step = step_of(wait_from, step_start_ns)
    given = give_waits(wait_from, wait_to, own, start_ns[main], end_ns[main], phase[main])
    return DeviceTimeline(
        start_ns=start_ns,
        end_ns=end_ns,
        queued_ns=queued_ns,
        left_ns=left_ns,
        phase=phase,
        main=main,
        work_ns=_work(start_ns, end_ns, left_ns, phase),
        wait_from_ns=wait_from,
        wait_to_ns=wait_to,
        moved_ns=_per_step(given, own, step, max(0, len(step_start_ns) - 1)),
        complete=_complete(marks, host, step_start_ns, boundary_code),
        lag_ns=_lag(marks.host_ns[own_stream], reached[own_stream], step_start_ns),
        uncertainty_ns=half,
        dropped=marks.dropped,
    )


def clock_origin(host_ns: np.ndarray, device_ns: np.ndarray, seen_ns: np.ndarray) -> tuple[np.ndarray, float]:
    """What to add to each device time, as int64 ns, and half the median distance between its bounds in ns."""
    window = (host_ns - host_ns[0]) // WINDOW_NS
    first = np.flatnonzero(np.diff(window, prepend=-1))
    at = window[first].astype(float) * WINDOW_NS
    low = _carried(at, np.maximum.reduceat(host_ns - device_ns, first).astype(float), -1.0)
    high = _carried(at, np.minimum.reduceat(seen_ns - device_ns, first).astype(float), 1.0)
    middle, half = (low + high) / 2, np.abs(high - low) / 2
    of = np.searchsorted(first, np.arange(len(host_ns)), side="right") - 1
    return np.rint(middle).astype(np.int64)[of], float(np.median(half))


def _carried(at: np.ndarray, bound: np.ndarray, sign: float) -> np.ndarray:
    """The tightest bound at each time: its own, or another one widened by the drift in between (`sign` 1: an upper bound)."""
    tight = bound * sign
    slope = DRIFT * at
    before = np.minimum.accumulate(tight - slope) + slope
    after = np.minimum.accumulate((tight + slope)[::-1])[::-1] - slope
    return np.minimum(before, after) * sign


def _own_stream(stream: np.ndarray) -> int:
    return int(np.argmax(np.bincount(stream)))


def neighbours(stream: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of boundaries with one span between them, as indices, and whether it is on the program's own stream."""
    own = _own_stream(stream)
    mine = np.flatnonzero(stream == own)
    others = np.flatnonzero((stream[:-1] == stream[1:]) & (stream[:-1] != own))
    begin, end = np.concatenate((mine[:-1], others)), np.concatenate((mine[1:], others + 1))
    return begin, end, np.arange(len(begin)) < len(mine) - 1


def _phase_at(host: Spans, at_ns: np.ndarray) -> np.ndarray:
    before = np.searchsorted(host.t_ns, at_ns, side="right") - 1
    return np.where(before >= 0, host.effective[np.maximum(before, 0)], PHASES.index("Other"))


def _work(start: np.ndarray, end: np.ndarray, left: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """In phases that queue work the whole span; in the others what the device did after the host had left: it may have idled before."""
    return np.where(np.isin(phase, WORKING), end - start, end - np.minimum(end, np.maximum(start, left)))


def _waits(marks: Marks, start: np.ndarray, queued: np.ndarray, left: np.ndarray, phase: np.ndarray, half: float) -> tuple[np.ndarray, ...]:
    """Calls that were seen to block, and phases that must have: the host left a copy to the device after the device had finished what was
    queued before it, or any phase that makes no data just when it had."""
    near = NEAR_NS + 2 * half
    behind = start - queued > 2 * near
    copies = (phase == H2D) & (left >= start - near)
    met = (phase != H2D) & (phase != DATA) & (np.abs(left - start) <= near) & (half <= UNSURE_NS)
    inside = np.searchsorted(marks.wait_from_ns, left) > np.searchsorted(marks.wait_from_ns, queued)
    hidden = behind & (copies | met) & ~inside
    begin = np.concatenate((marks.wait_from_ns, queued[hidden]))
    end = np.concatenate((marks.wait_to_ns, np.minimum(start, left)[hidden]))
    order = np.argsort(begin, kind="stable")
    return begin[order], end[order]


def _inside_one_phase(host: Spans, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Waits, each cut where the next mark of the host or the next wait begins: it can't take more from a phase than the phase has."""
    if not len(begin):
        return begin, end
    following = np.searchsorted(host.t_ns, begin, side="right")
    until = host.t_ns[np.minimum(following, len(host.t_ns) - 1)]
    until = np.where(following < len(host.t_ns), until, begin)
    until = np.minimum(until, np.append(begin[1:], until[-1]))
    return begin, np.maximum(begin, np.minimum(end, until))


def give_waits(
    wait_from: np.ndarray, wait_to: np.ndarray, wait_phase: np.ndarray, start: np.ndarray, end: np.ndarray, phase: np.ndarray
) -> np.ndarray:
    """For each wait and phase: nanoseconds of the wait that the phase is to bear, `[waits, phases]`; a row adds up to its wait's length.

    `start`, `end` and `phase` are the spans of one stream, in queue order: disjoint, ascending. What of the wait the device spent in no
    span stays with the phase that waited.
    """
    given = np.zeros((len(wait_from), len(PHASES)), dtype=np.int64)
    if len(start):
        zero = int(start[0])
        knots = np.stack((start, end), axis=1).ravel() - zero
        for index in np.unique(phase):
            length = np.where(phase == index, end - start, 0)
            done = np.stack((np.cumsum(length) - length, np.cumsum(length)), axis=1).ravel()
            given[:, index] = np.rint(np.interp(wait_to - zero, knots, done) - np.interp(wait_from - zero, knots, done))
    rest = (wait_to - wait_from) - given.sum(axis=1)
    np.add.at(given, (np.arange(len(given)), wait_phase), rest)
    return given


def _per_step(given: np.ndarray, own: np.ndarray, step: np.ndarray, steps: int) -> np.ndarray:
    moved = np.zeros((len(PHASES), steps), dtype=np.int64)
    inside = (step >= 0) & (step < steps)
    for index in range(len(PHASES)):
        np.add.at(moved[index], step[inside], given[inside, index])
    np.add.at(moved, (own[inside], step[inside]), -given[inside].sum(axis=1))
    return moved


def _complete(marks: Marks, host: Spans, step_start_ns: np.ndarray, boundary_code: int) -> np.ndarray:
    """Steps whose boundaries all have an event that was read, up to the one that begins the next step."""
    steps = max(0, len(step_start_ns) - 1)
    boundaries = host.t_ns[host.code != boundary_code]
    missing = boundaries[~np.isin(boundaries, marks.host_ns)]
    whole = np.ones(steps, dtype=bool)
    step = step_of(missing, step_start_ns)
    whole[step[(step >= 0) & (step < steps)]] = False
    return whole & (step_start_ns[:-1] >= marks.host_ns[0]) & (step_start_ns[1:] <= marks.host_ns[-1])


def _lag(host_ns: np.ndarray, reached: np.ndarray, step_start_ns: np.ndarray) -> np.ndarray:
    """At the first boundary after each step's end."""
    at = np.searchsorted(host_ns, step_start_ns[1:])
    known = at < len(host_ns)
    lag = np.full(len(at), np.nan)
    lag[known] = np.maximum(0, reached[at[known]] - host_ns[at[known]])
    return lag
