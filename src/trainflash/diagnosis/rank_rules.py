"""Rules about several ranks: communication, rank_straggler."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from trainflash.diagnosis.claims import Claim, at, claim, count, megabytes, milliseconds, percent, shown
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, RankStat

RARE = {"Eval": "evaluation", "Ckpt": "checkpoint", "Log": "logging"}  # one rank does these for all: the better name


@dataclass(frozen=True)
class Late:
    """The rank that the others wait for, and the phase that makes it late."""

    stat: RankStat
    phase: str
    excess_ms: float  # own time above the median of the other ranks
    phase_ms: float  # of it in `phase`
    usual_ms: float  # the median of the others' own time
    share: float  # of a step


def late_rank(signals: Signals, limits: Thresholds) -> Late | None:
    """The straggler, None where the ranks are about equal or were not measured.

    A rank's own time is compared, because a collective makes all ranks' steps equally long whoever is late.
    """
    stats = [stat for stat in signals.summary.rank_stats if stat.own_ms]
    if len(stats) < 2:
        return None
    slow = max(stats, key=lambda stat: sum(stat.own_ms.values()))
    others = [stat for stat in stats if stat is not slow]
    usual = median(sum(stat.own_ms.values()) for stat in others)
    own = sum(slow.own_ms.values())
    excess = own - usual
    step = max(slow.step_ms, own)
    if usual <= 0 or step <= 0 or own < limits.straggler * usual or excess / step < limits.listed:
        return None
    over = {name: ms - median(stat.own_ms.get(name, 0.0) for stat in others) for name, ms in slow.own_ms.items()}
    phase = max(over, key=lambda name: over[name])
    return Late(slow, phase, excess, over[phase], usual, min(1.0, excess / step))


def rank_straggler(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """One rank is later than the median of the others, and they wait for it; named with the phase that makes it late."""
    late = late_rank(signals, limits)
    if late is None:
        return ()
    stats = signals.summary.rank_stats
    rank, host = late.stat.rank, f" on {late.stat.host}" if late.stat.host else ""
    rows = [
        milliseconds(f"own time of rank {rank} per step", sum(late.stat.own_ms.values())),
        milliseconds("median of the others' own time per step", late.usual_ms),
        milliseconds(f"more in {late.phase} than the others", late.phase_ms),
        count("ranks", len(stats)),
    ]
    rows += [milliseconds(f"waiting of rank {stat.rank} per step", stat.waiting_ms) for stat in stats if stat.waiting_ms is not None][:8]
    rows += _rows_per_rank(stats)
    cause = ", whose batches take longer to make" if late.phase == "Data" else ""
    return (
        claim(
            "rank_straggler",
            late.phase,
            "input" if late.phase == "Data" else "device" if signals.on_gpu else "host",
            late.share,
            limits,
            phases=(late.phase,) if rank == 0 else (),
            summary=f"rank {rank}{host} is {late.excess_ms:.1f} ms later than the others in each step, most of it in {late.phase}{cause}; "
            f"they wait for it {shown(late.share)} of the time",
            evidence=rows,
            location=late.stat.hottest.get(late.phase) or (signals.hottest(late.phase) if rank == 0 else None),
            inside=RARE.get(late.phase) if rank == 0 else None,
        ),
    )


def communication(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Ranks exchange gradients or parameters, and computing does not hide it (T23). Waiting for a later rank is not counted.

    Off a GPU what is waited in collectives is part of Bwd or of the call's own phase. Where gradients are reduced too often it is placed at
    the backward that does so, else where the network was wrapped or the collective is called. Abstains without collectives seen.
    """
    found = signals.summary.communication
    if found is None or signals.summary.ranks < 2:
        return ()
    late = late_rank(signals, limits)
    waiting = found.share * found.wait_share if found.wait_share is not None else late.share if late is not None and late.stat.rank else 0.0
    share = max(0.0, found.share - waiting)
    if share < limits.listed:
        return ()
    rows = [
        percent("waiting in collectives, share of wall time", found.share),
        milliseconds("per step", found.per_step_ms),
        Evidence("by", f"{found.wrapper} over {found.backend}"),
    ]
    optional = (
        ("of it waiting for a later rank", found.wait_share, percent),
        ("hidden behind backward", found.overlap, percent),
        ("collectives per step", found.calls_per_step, count),
        ("exchanged per step", found.bytes_per_step, megabytes),
        ("reductions per update", found.syncs_per_step, count),
    )
    rows += [how(name, value) for name, value, how in optional if value is not None]
    advice = _breakers(signals, limits)
    where = (signals.hottest("Bwd") if _too_often(signals, limits) else None) or found.location
    rows += [Evidence("breaks overlap", text) for text in advice]
    return (
        claim(
            "communication",
            "Bwd",
            "communication",
            share,
            limits,
            phases=() if found.wrapper == "collectives" else ("Bwd",),
            summary=f"ranks exchange data for {shown(share)} of the time without computing meanwhile{at(where)}"
            + (f"; {advice[0]}" if advice else ""),
            evidence=rows,
            location=where,
        ),
    )


def _too_often(signals: Signals, limits: Thresholds) -> bool:
    """Whether gradients are reduced by more backwards than an update needs."""
    found, updates = signals.summary.communication, signals.summary.updates
    accumulates = updates is None or updates.backwards_per_step >= limits.syncs_extra
    return found is not None and found.syncs_per_step is not None and found.syncs_per_step >= limits.syncs_extra and accumulates


def _breakers(signals: Signals, limits: Thresholds) -> list[str]:
    """What is known to break the overlap of communication and backward, cheapest to mend first."""
    found = signals.summary.communication
    if found is None:
        return []
    advice = []
    if _too_often(signals, limits):
        advice.append(f"gradients are reduced {found.syncs_per_step:.0f} times for each update: no_sync() is missing")
    if found.find_unused_parameters and not found.static_graph:
        advice.append("find_unused_parameters walks the graph in each step")
    if found.bucket_cap_mb is not None and found.bucket_cap_mb < limits.bucket_small_mb:
        advice.append(f"buckets of {found.bucket_cap_mb:g} MB make many small collectives")
    return advice


def _rows_per_rank(stats: tuple[RankStat, ...]) -> list[Evidence]:
    """Samples per step of each rank where they differ."""
    rows = {stat.rank: stat.samples_per_step for stat in stats if stat.samples_per_step is not None}
    if len(set(rows.values())) < 2:
        return []
    return [count(f"samples per step of rank {rank}", value) for rank, value in sorted(rows.items())[:8]]
