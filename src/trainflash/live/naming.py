"""A finding at a line below which a library works says which of its functions takes the time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainflash.live.sites import Cost
from trainflash.schema import Evidence, Finding, Location

_TOLD = ("input_cpu", "input_io", "host_code", "checkpoint", "logging")  # kinds whose summary names it; others have it as evidence
_NOT = ("worker_startup",)  # its line does other things too
_TORCH = "torch/"
_MOST = 0.5  # own: of the finding's time, before one function stands for it


@dataclass(frozen=True)
class _Below:
    function: Location
    share: float
    of_workers: bool


def named(findings: Iterable[Finding], costs: Iterable[tuple[Cost, ...]]) -> tuple[Finding, ...]:
    """The findings, with what lies below their lines where stacks show it; `costs` are those of each training process."""
    places = tuple(costs)
    return tuple(_named(each, places) for each in findings)


def _named(finding: Finding, costs: tuple[tuple[Cost, ...], ...]) -> Finding:
    below = next((found for each in costs if (found := _below(finding, each)) is not None), None)
    if below is None or finding.kind in _NOT:
        return finding
    evidence = (*finding.evidence, Evidence("calls", f"{below.function.function} ({below.function})"))
    known = finding.phase != "Data" and below.function.file.startswith(_TORCH)  # the line says so itself
    little = not below.of_workers and below.share < _MOST * finding.share
    if finding.kind not in _TOLD or known or little:
        return replace(finding, evidence=evidence)
    time = "workers' time" if below.of_workers else "time"
    told = f"{below.function.function} ({below.function}) below that line takes {round(100 * below.share, 1)} % of the {time}."
    return replace(finding, summary=f"{finding.summary} {told}", evidence=evidence)


def _below(finding: Finding, costs: tuple[Cost, ...]) -> _Below | None:
    here = [cost for cost in costs if finding.location is not None and finding.location in (cost.site.location, cost.site.under)]
    first = max(here, key=lambda cost: (cost.site.phase == finding.phase, cost.site.share), default=None)
    if first is None:
        return None
    if first.calls is None and first.site.phase == "Data" and first.site.role == "main":  # it waits for its workers
        first = next((cost for cost in costs if cost.site.role == "worker" and cost.calls is not None), first)
    if first.calls is None:
        return None
    return _Below(first.calls, first.calls_share, first.site.role == "worker")
