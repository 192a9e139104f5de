"""What the lines of sites ask torch for: calls by name, their time, their own backward, and the least that they need on this machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from trainflash.schema import Location, Peaks, Site, SiteOperator
from trainflash.stacks import anchor
from trainflash.summary.floors import floor_s
from trainflash.summary.steady import NS_PER_MS
from trainflash.trace.calls import CallRow, CallTrace

MOST_OPERATORS = 6
DESCRIBED = 0.7  # own: of the calls' time, that has to be of calls whose tensors are known
NETWORK = "Fwd"
_ENGINE = ("backward", "grad")  # calls that go back through a graph, whose work is that of other calls
_ELSEWHERE = ("Bwd", "Opt", "Data")  # phases of calls that are no part of a forward


@dataclass
class _Calls:
    """All calls of one function of torch by one line, in all recorded steps."""

    rows: list[CallRow] = field(default_factory=list)

    @property
    def ns(self) -> int:
        return sum(row.ns for row in self.rows)

    @property
    def backward_ns(self) -> int:
        return sum(row.backward_ns for row in self.rows)

    @property
    def costliest(self) -> CallRow | None:
        """Of those whose tensors were told: short ones are not."""
        return max((row for row in self.rows if row.given), key=lambda row: row.ns + row.backward_ns, default=None)

    @property
    def channels_last_saves(self) -> float | None:
        """Part of all their time; of calls that were not tried nothing."""
        tried = [row for row in self.rows if row.in_channels_last is not None]
        saved = sum((row.ns + row.backward_ns) * (1 - row.in_channels_last) for row in tried if row.in_channels_last is not None)
        return saved / (self.ns + self.backward_ns) if tried else None

    @property
    def alone_ns(self) -> float | None:
        """Of all calls together, as they were tried by themselves; None where those are a smaller part."""
        tried = [row for row in self.rows if row.alone_ns]
        if sum(row.ns + row.backward_ns for row in tried) < DESCRIBED * (self.ns + self.backward_ns):
            return None
        return sum(row.calls * row.alone_ns[0] for row in tried)

    def floor_ms(self, peaks: Peaks | None) -> float | None:
        """Of all calls together, of which short ones, that are not described, may need nothing; None where those are a larger part.

        None too where what a described call needs is not known.
        """
        described = [row for row in self.rows if row.given]
        long_ns = sum(row.ns + row.backward_ns for row in described)
        if peaks is None or not described or long_ns < DESCRIBED * (self.ns + self.backward_ns):
            return None
        floors = [floor_s(row, peaks) for row in described]
        return None if None in floors else 1e3 * sum(row.calls * floor for row, floor in zip(described, floors, strict=True) if floor)


def with_operators(sites: list[Site], calls: tuple[CallTrace, ...], loops: frozenset[Location], peaks: Peaks | None) -> list[Site]:
    """The sites of forwards with their operators, in the mean of the recorded steps; those of a machine with `peaks` have floors.

    A recorded step says how forward's time is divided among calls, the samples how much there is of it.
    """
    found: dict[Location, dict[str, _Calls]] = defaultdict(lambda: defaultdict(_Calls))
    for row in (row for call in calls for row in call.rows):
        at = anchor(row.stack, loops)
        if at is not None and row.name not in _ENGINE and row.phase not in _ELSEWHERE:
            found[at][row.name].rows.append(row)
    called_back = {site.location for site in sites if site.called_back}
    forward_ns = sum(each.ns for at, asked in found.items() if at not in called_back for each in asked.values())
    inside = [
        site.phase == NETWORK or (site.phase == "Data" and site.location in found) for site in sites
    ]  # of forward, batches made there
    forward = sum(site.forward for site, of_forward in zip(sites, inside, strict=True) if of_forward and site.location not in called_back)
    each = forward / forward_ns if forward_ns else 0.0
    return [
        replace(site, operators=_operators(site, found[site.location], len(calls), each, peaks))
        if of_forward and site.location in found
        else site
        for site, of_forward in zip(sites, inside, strict=True)
    ]


def _operators(site: Site, asked: dict[str, _Calls], steps: int, each: float, peaks: Peaks | None) -> tuple[SiteOperator, ...]:
    """Costliest first; `each`: share of the time for a recorded nanosecond of forward."""
    there = min(each, _part(site.forward, (calls.ns for calls in asked.values())))
    back = _part(site.backward, (calls.backward_ns for calls in asked.values()))
    operators = []
    for name, calls in asked.items():
        costliest, floor = calls.costliest, calls.floor_ms(peaks)
        operators.append(
            SiteOperator(
                name=name,
                calls=sum(row.calls for row in calls.rows) / steps,
                ms=calls.ns / steps / NS_PER_MS,
                backward_ms=calls.backward_ns / steps / NS_PER_MS,
                share=min(site.share, there * calls.ns + back * calls.backward_ns),
                given=costliest.given if costliest is not None else (),
                made=costliest.made if costliest is not None else (),
                arguments=costliest.arguments if costliest is not None else (),
                floor_ms=None if floor is None or floor * NS_PER_MS > calls.ns + calls.backward_ns else floor / steps,  # else it is refuted
                alone_ms=None if calls.alone_ns is None else calls.alone_ns / steps / NS_PER_MS,
                channels_last_saves=calls.channels_last_saves,
            )
        )
    return tuple(sorted(operators, key=lambda operator: -operator.share)[:MOST_OPERATORS])


def _part(share: float, ns: Iterable[int]) -> float:
    whole = sum(ns)
    return share / whole if whole else 0.0
