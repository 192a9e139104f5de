"""What was seen of a running program → the document `live.v1`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence

from trainflash.live import places
from trainflash.live.hung import still
from trainflash.live.naming import named
from trainflash.live.sites import MOST_SITES, cost_sites
from trainflash.live.target import resolve
from trainflash.live.thresholds import DEFAULT
from trainflash.live.triage import triage
from trainflash.live.window import OnProgress, Watched, watch
from trainflash.schema.live import Live, LiveLine, LiveProcess, LiveThread

_LINES = 8
_THREADS = 5
_COMMAND = 120

Clean = Callable[[Sequence[str]], Sequence[str]]


def diagnose(pid: int, seconds: float, on_progress: OnProgress, clean: Clean = tuple) -> Live:
    """Watch `pid`, or the training below it, for `seconds` and say what holds it. `clean` takes secrets out of command lines.

    Raises `UsageError`, one line, when there is nothing to watch.
    """
    target = resolve(pid)
    window = watch(target, seconds, on_progress)
    findings, abstained = triage(window)
    costs = cost_sites(window)
    order = {"training": 0, "worker": 1, "launcher": 2, "helper": 3}
    shown = sorted(window.watched, key=lambda each: (order[each.role], each.rank or 0, each.pid))
    return Live(
        pid=pid,
        taken=tuple(each.pid for each in shown if each.role == "training"),
        seconds=round(window.seconds, 1),
        processes=tuple(_process(each, clean) for each in shown),
        findings=named(findings, costs),
        abstained=abstained,
        lacks=window.lacks,
        notes=target.notes,
        telemetry=window.telemetry,
        sites=tuple(cost.site for cost in costs[0][:MOST_SITES]) if costs else (),
    )


def _process(each: Watched, clean: Clean) -> LiveProcess:
    doing = Counter(place.doing for place in each.doing)
    reads = each.reads_bytes_s
    return LiveProcess(
        pid=each.pid,
        parent=each.parent,
        role=each.role,
        rank=each.rank if each.role == "training" else None,
        command=_cut(shlex.join(clean(each.argv))),
        cpu=round(each.cpu, 3),
        threads=len(each.after) or each.last.threads,
        busiest=_busiest(each),
        samples=len(each.doing),
        still=still(each, DEFAULT),
        doing={name: round(times / len(each.doing), 4) for name, times in doing.most_common()},
        lines=_lines(each),
        waits_for=each.waits_for[1],
        read_mb_s=None if reads is None else round(reads / 1e6, 3),
        beside=each.beside,
    )


def _busiest(each: Watched) -> tuple[LiveThread, ...]:
    found = []
    for tid, counters in each.after.items():
        queued = each.thread_queued(tid)
        found.append(
            LiveThread(tid, counters.name, round(each.thread_cpu(tid) or 0.0, 3), None if queued is None else round(min(1.0, queued), 3))
        )
    return tuple(sorted(found, key=lambda thread: -thread.cpu)[:_THREADS])


def _lines(each: Watched) -> tuple[LiveLine, ...]:
    seen = Counter((place.own, place.doing) for place in each.doing if place.own is not None)
    return tuple(
        LiveLine(places.location(own, each.cwd), round(times / len(each.doing), 4), doing)
        for (own, doing), times in seen.most_common(_LINES)
    )


def _cut(words: str) -> str:
    return words if len(words) <= _COMMAND else words[: _COMMAND - 1] + "…"
