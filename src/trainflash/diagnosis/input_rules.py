"""Rules about making batches: input_cpu, input_io, input_tail, collate, worker_startup, repeated_work, h2d."""

from __future__ import annotations

from trainflash.diagnosis.claims import Claim, bound, count, milliseconds, percent, severity, shown
from trainflash.diagnosis.signals import Input, Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, Finding, RepeatedWork


def input_cost(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """input_cpu, input_io, input_tail or collate: the training process waits for batches (T1, T8). Abstains without the phase Data."""
    data = signals.data
    if data is None or data.calm < limits.listed:
        return ()
    memoizable = data.name in ("input_cpu", "input_io", "collate") and bool(_memoizable(signals, limits))
    knobs = ("memoize_function",) if memoizable else ()
    if data.loader is not None:
        workers = data.loader.num_workers > 0
        moves = ("prefetch_factor", "dataloader_workers") if data.name == "input_tail" and workers else ("dataloader_workers",)
        knobs += moves + (("prefetch_factor",) if workers and "prefetch_factor" not in moves else ())
    finding = Finding(
        kind=data.name,
        phase="Data",
        bound_by="io" if data.name == "input_io" else "input",
        share=data.share,
        severity=severity(data.share, limits),
        summary=_input_sentence(data),
        evidence=_input_evidence(signals, data),
        location=data.location,
        ceiling=bound(data.share),
        knobs=knobs,
    )
    return (Claim(finding, data.calm),)


def collate_beside(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """collate as a large part of an input that is named otherwise. Abstains where collating was not timed."""
    data = signals.data
    if data is None or data.collate_part is None or data.name == "collate" or data.collate_part < limits.collate_beside:
        return ()
    share = data.share * data.collate_part
    if data.calm * data.collate_part < limits.listed or data.loader is None:
        return ()
    finding = Finding(
        kind="collate",
        phase="Data",
        bound_by="input",
        share=share,
        severity=severity(share, limits),
        summary=f"joining samples into batches is {shown(data.collate_part)} of the making of a batch",
        evidence=(percent("part of making a batch", data.collate_part), *_spread("collate per batch", data.loader.collate_ms)),
        location=data.loader.location,
        ceiling=bound(share),
        knobs=("dataloader_workers",),
    )
    return (Claim(finding, share, inside=data.name),)


def worker_startup(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Workers are started again for each pass over the data (T5). Abstains where the start was not timed or workers persist."""
    start = signals.worker_start
    if start is None or start.share < limits.listed or start.times < 2:
        return ()
    loader = start.loader
    finding = Finding(
        kind="worker_startup",
        phase="Eval" if loader.role == "eval" else "Data",
        bound_by="input",
        share=start.share,
        severity=severity(start.share, limits),
        summary=f"{loader.num_workers} data workers are started again for each pass over the data: "
        f"{start.each_ms:.0f} ms, {start.times} times",
        evidence=(
            percent("share of wall time", start.share),
            milliseconds("start per pass", start.each_ms),
            count("passes", start.times),
            count("workers", loader.num_workers),
            Evidence("persistent_workers", "off"),
        ),
        location=loader.location,
        ceiling=bound(start.share),
        knobs=("persistent_workers", "dataloader_workers"),
    )
    return (Claim(finding, start.share),)


def repeated_work(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The same pure work is done again with equal arguments. Stands beside the input finding when it happens while fetching."""
    claims = []
    for work in _repeating(signals, limits):
        inside = work.location in signals.repeated_in_data
        share = min(work.share, _making(signals, work)) if inside else work.share
        if share < limits.listed or (inside and signals.data is not None and signals.data.calm < limits.listed):
            continue
        finding = Finding(
            kind="repeated_work",
            phase="Data" if inside else "Other",
            bound_by="input" if inside else "host",
            share=share,
            severity=severity(share, limits),
            summary=f"{work.qualname} did the same work again in {work.repeats} of {work.calls} calls that could show it, "
            f"about {shown(share)} of the time",
            evidence=(
                percent("estimated share of wall time", share),
                count("calls traced that could repeat an earlier one", work.calls),
                count("of these did", work.repeats),
                count("different arguments in all", work.distinct),
                milliseconds("mean per call", work.mean_ms),
                Evidence("arguments can be keys of a cache", "yes" if work.hashable else "no"),
            ),
            location=work.location,
            ceiling=bound(share),
            knobs=("memoize_function",),
        )
        claims.append(Claim(finding, share, inside=signals.data.name if inside and signals.data is not None else None))
    return tuple(claims)


def h2d(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Copies to the device block the step (T6). Abstains without a GPU or without the phase."""
    share = signals.share("H2D")
    if not signals.on_gpu or share is None or share < limits.listed:
        return ()
    loader = signals.data.loader if signals.data is not None else None
    finding = Finding(
        kind="h2d",
        phase="H2D",
        bound_by="host",
        share=share,
        severity=severity(share, limits),
        summary=f"copies from host to device hold the step up for {shown(share)} of the time",
        evidence=(
            percent("share of wall time", share),
            milliseconds("mean per step", signals.summary.phases["H2D"].mean_ms),
            Evidence("pin_memory", "not a DataLoader" if loader is None else "on" if loader.pin_memory else "off"),
        ),
        location=loader.location if loader is not None else None,
        ceiling=bound(share),
        knobs=("pin_memory",) if loader is not None and not loader.pin_memory else (),
    )
    return (Claim(finding, share),)


def _making(signals: Signals, work: RepeatedWork) -> float:
    """Share of the wall time that this work can be blamed for: Data without worker start-up, its own part of making a batch."""
    if signals.data is None:
        return 0.0
    collating = signals.data.collate_part or 0.0
    return signals.data.share * (collating if work.during == "collate" else 1 - collating)


def _repeating(signals: Signals, limits: Thresholds) -> tuple:
    return tuple(work for work in signals.repeated if work.repeats >= max(limits.repeated_times, limits.repeated_calls * work.calls))


def _memoizable(signals: Signals, limits: Thresholds) -> tuple:
    inside = signals.repeated_in_data
    return tuple(work for work in _repeating(signals, limits) if work.location in inside and work.share >= limits.listed)


def _input_sentence(data: Input) -> str:
    where = f", most of it at {data.location}" if data.location is not None else ""
    what = {
        "input_cpu": f"training waits {shown(data.share)} of the time for batches that are computed on the CPU{where}",
        "input_io": f"training waits {shown(data.share)} of the time for batches that wait for disk or network{where}",
        "input_tail": f"few late batches make {shown(data.late_part or 0.0)} of the wait for data, {shown(data.share)} of the time{where}",
        "collate": f"joining samples into batches holds training up for {shown(data.share)} of the time{where}",
    }
    return what[data.name]


def _input_evidence(signals: Signals, data: Input) -> tuple[Evidence, ...]:
    stat, loader = signals.summary.phases["Data"], data.loader
    rows = [percent("share of wall time", data.share), milliseconds("mean per step", stat.mean_ms)]
    rows += [
        milliseconds(name, value)
        for name, value in (("median per step", stat.p50_ms), ("95th percentile per step", stat.p95_ms))
        if value is not None
    ]
    if loader is None:
        rows.append(Evidence("DataLoader", "none, batches are made in the training process"))
    else:
        rows.append(count("workers", loader.num_workers))
        rows += _spread("samples per batch", loader.getitem_ms) + _spread("collate per batch", loader.collate_ms)
    rows.append(
        Evidence("CPU share of fetching", "not measured: it may also wait for disk or network")
        if data.cpu_share is None
        else percent("CPU share of fetching", data.cpu_share)
    )
    return tuple(rows)


def _spread(name: str, spread) -> list[Evidence]:
    return [] if spread is None else [milliseconds(name, spread.mean_ms)]
