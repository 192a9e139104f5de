"""What reports of profiles say: sheets of tables and lists, which terminal, Markdown and the HTML page all render from.

A sheet holds finished texts, deterministic, from the artefacts alone; texts of others in it are not yet made safe for any medium.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainflash.report import figures
from trainflash.schema.profile_changes import Delta, ProfileAssessment, ProfileComparison, ProfileHistory, ShareDelta
from trainflash.schema.profile_times import BreakdownPart
from trainflash.schema.profiles import OptimizationCandidate, ProfileSummary

US_PER_MS = 1000
PARTS = ("compute", "communication", "copy", "host", "stall", "other")
TONES = {"pass": "good", "fail": "bad"}
MEMORY = {True: "pinned", False: "pageable", None: ""}


@dataclass(frozen=True)
class Item:
    """One line with lines below it."""

    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """A titled table, a list, or both. `chart` names the picture that belongs to it."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    items: tuple[Item, ...] = ()
    notes: tuple[str, ...] = ()
    chart: str | None = None


@dataclass(frozen=True)
class Sheet:
    """One report. `tone` is that of its headline: good, bad or unsure."""

    title: str
    headline: str
    tone: str
    facts: tuple[str, ...]
    warnings: tuple[str, ...]
    blocks: tuple[Block, ...]


def of_summary(summary: ProfileSummary, top_k: int = 10) -> Sheet:
    """The root-cause report of one profile."""
    seen, readable = summary.trace_overview, summary.trace_provenance.readability_run
    warnings = seen.quality_warnings + (("a run for readable names, never compare its times: " + ", ".join(readable),) if readable else ())
    blocks = (
        _candidates(summary.optimization_candidates),
        _breakdown(summary),
        _steps(summary),
        _idle(summary),
        _ranks(summary),
        _communication(summary, top_k),
        _sites(summary, top_k),
        _ops(summary, top_k),
        _families(summary, top_k),
        _gaps(summary, top_k),
        _regions(summary, 2 * top_k),
        _copies(summary),
        _launches(summary),
        _memory(summary),
        _xprof(summary),
    )
    explain = list(dict.fromkeys(each.finding for each in summary.optimization_candidates))[:3]
    facts = (
        f"trace: {summary.source_format}, {seen.num_ranks} of {seen.world_size or seen.num_ranks} ranks, "
        f"{seen.num_complete_events:,} events, digest {summary.digest[:16]}",
        f"window: {ms(summary.time_breakdown.window_us)}{_together(summary)}; {step_words(summary)}",
        *(f"trainflash explain {name}: what that means and what helps" for name in explain),
    )
    return Sheet(
        "Profile report", headline(summary), "unsure" if explain and explain != ["compute"] else "good", facts, warnings, _filled(blocks)
    )


def _together(summary: ProfileSummary) -> str:
    """What a window is added up over."""
    if any(summary.time_breakdown.window_us > rank.window_us * len(summary.ranks) * 1.5 for rank in summary.ranks):
        return " over all devices"
    return " over all ranks" if len(summary.ranks) > 1 else ""


def of_comparison(comparison: ProfileComparison, assessment: ProfileAssessment | None = None) -> Sheet:
    """The report of two profiles, with its assessment where there is one."""
    unit = comparison.normalized_by
    step, checked = comparison.step_time, comparison.provenance
    steps = [("mean", step.mean_us), ("median", step.median_us), ("p90", step.p90_us)]
    blocks = (
        _deltas("Step time, ms", steps),
        _deltas("Step classes, ms", [(each.name, each.median_us) for each in comparison.step_classes]),
        _shares(f"Breakdown, ms a {unit}", comparison.time_breakdown_share_delta, chart="change"),
        _shares(f"Idle time by cause, ms a {unit}", comparison.idle_causes),
        _deltas(f"Families, ms a {unit}", [(each.family, each.per_unit_us) for each in comparison.semantic_families]),
        _deltas(
            f"Regressed ops, ms a {comparison.ops_normalized_by}", [(each.name, each.per_unit_us) for each in comparison.regressed_ops]
        ),
        _deltas(f"Improved ops, ms a {comparison.ops_normalized_by}", [(each.name, each.per_unit_us) for each in comparison.improved_ops]),
    )
    said = comparison.said or ("nothing changed by 2 % or more",)
    warnings = [*(f"unlike: {each}" for each in checked.differences), *checked.notes]
    warnings += ["both sides are the same trace"] if checked.same_trace else []
    blocks = blocks if comparison.changed else ()
    if assessment is None:
        return Sheet("Profile comparison", said[0], "unsure" if comparison.changed else "good", said[1:], tuple(warnings), _filled(blocks))
    label = f" ({assessment.label})" if assessment.label else ""
    told = (*assessment.failures, *assessment.warnings, *warnings)
    head = f"{assessment.result}{label}: {said[0]}"
    return Sheet("Profile comparison", head, TONES.get(assessment.result, "unsure"), said[1:], told, _filled(blocks))


def _deltas(title: str, rows: Sequence[tuple[str, Delta]]) -> Block:
    return Block(title, ("", "before", "after", "change", "ratio"), tuple((name, *_delta(value)) for name, value in rows))


def _shares(title: str, rows: Sequence[ShareDelta], chart: str | None = None) -> Block:
    cells = tuple(
        (figures.words(each.part), figures.percent(each.share.before), figures.percent(each.share.after), *_delta(each.per_unit_us)[:3])
        for each in rows
        if each.share.before or each.share.after
    )
    return Block(title, ("", "share before", "after", "before", "after ", "change"), cells, chart=chart)


def of_history(history: ProfileHistory) -> Sheet:
    """The report of all tracked comparisons."""
    counts = ", ".join(f"{count} {name}" for name, count in history.status_counts.items())
    change = history.step_median_change_pct
    rows = tuple(
        (
            figures.clock(each.recorded_at_utc),
            each.label or "",
            each.result,
            number(each.step_median_before_us),
            number(each.step_median_after_us),
            figures.DASH if each.step_median_regression_pct is None else f"{each.step_median_regression_pct:+.1f} %",
        )
        for each in history.trend
    )
    blocks = (
        Block("Trend", ("recorded", "label", "result", "before, ms", "after, ms", "change"), rows, chart="trend"),
        Block("Failures", ("what", "times"), tuple((each.message, str(each.count)) for each in history.top_failures)),
        Block("Warnings", ("what", "times"), tuple((each.message, str(each.count)) for each in history.top_warnings)),
    )
    facts = (f"median step from the first record to the last: {change:+.1f} %",) if change is not None else ()
    lost = (f"{history.unreadable_lines} lines could not be read and are left out",) if history.unreadable_lines else ()
    latest = history.trend[-1].result
    tone = TONES.get(latest, "unsure")
    return Sheet("Profile history", f"{history.num_records} records: {counts}; the latest: {latest}", tone, facts, lost, _filled(blocks))


def headline(summary: ProfileSummary) -> str:
    """The one sentence at the top."""
    candidates = summary.optimization_candidates
    if not candidates:
        return "Nothing large enough to be listed stands out."
    first = candidates[0]
    return f"{first.title}: {figures.percent(first.share)} of the time." if first.share is not None else f"{first.title}."


def breakdown_rows(summary: ProfileSummary) -> list[tuple[str, BreakdownPart]]:
    """The parts that have any time."""
    return [(name, part) for name in PARTS if (part := getattr(summary.time_breakdown, name)).total_duration]


def step_words(summary: ProfileSummary) -> str:
    """Step time in words."""
    steady = summary.step_time.steady_state_steps
    if not steady.count:
        return "no steps are marked"
    words = f"step {ms(steady.median)} (median of {steady.count}, {summary.step_time.warmup_steps_ignored} warm-up left out)"
    return words + "".join(f", {each.count} {each.name} of {ms(each.representative_duration)}" for each in summary.step_time.classes)


def ms(us: float | None) -> str:
    """Microseconds as milliseconds with the unit."""
    return figures.ms(None if us is None else us / US_PER_MS)


def number(us: float | None) -> str:
    """Microseconds as milliseconds for a cell."""
    return figures.cell(None if us is None else us / US_PER_MS)


def _filled(blocks: Sequence[Block]) -> tuple[Block, ...]:
    return tuple(block for block in blocks if block.rows or block.items or block.notes)


def _delta(value: Delta) -> tuple[str, str, str, str]:
    change = figures.DASH if value.change is None else f"{value.change / US_PER_MS:+.3f}"
    ratio = figures.DASH if value.ratio is None else f"{value.ratio:.3f}"
    return number(value.before), number(value.after), change, ratio


def _candidates(candidates: Sequence[OptimizationCandidate]) -> Block:
    items = []
    for each in candidates:
        worth = f", {figures.percent(each.share)} of the time" if each.share is not None else ""
        ceiling = f", at most {figures.times(each.ceiling_speedup)}" if each.ceiling_speedup else ""
        details = (each.rationale, *each.evidence, *(f"try: {item}" for item in each.suggestions))
        details += (f"knobs: {', '.join(each.knobs)}",) if each.knobs else ()
        items.append(Item(f"{each.title} ({each.finding}{worth}{ceiling})", details))
    return Block("What to try next", items=tuple(items))


def _breakdown(summary: ProfileSummary) -> Block:
    rows = tuple((name, number(part.total_duration), figures.percent(part.share_of_total)) for name, part in breakdown_rows(summary))
    notes = [f"mode: {figures.words(summary.time_breakdown.duration_basis)}"]
    for each in summary.devices:
        whose = f"rank {each.rank}, " if each.rank is not None else ""
        notes.append(
            f"{whose}device {each.device}{f' ({each.name})' if each.name else ''}: kernels ran "
            f"{figures.percent(each.utilization)} of the time"
        )
    return Block("Where the time goes", ("part", "ms", "share"), rows, notes=tuple(notes[:9]), chart="breakdown")


def _steps(summary: ProfileSummary) -> Block:
    rows = tuple(
        (
            each.name,
            f"{each.count:,}",
            number(each.representative_duration),
            figures.percent(each.fraction_of_steady),
            str(each.periodicity or "irregular"),
        )
        for each in summary.step_time.classes
    )
    notes = (step_words(summary),) if summary.step_time.steps else ()
    return Block(
        "Steps", ("class", "steps", "ms", "of all", "every"), rows, notes=notes, chart="steps" if len(summary.step_time.steps) > 1 else None
    )


def _idle(summary: ProfileSummary) -> Block:
    causes = summary.idle.causes if summary.idle else ()
    rows = tuple(
        (
            figures.words(each.cause),
            number(each.total_us),
            figures.percent(each.share_of_window),
            f"{each.count:,}",
            number(each.longest_us),
            number(each.per_step_us),
        )
        for each in causes
    )
    return Block(
        "Why the device did nothing", ("cause", "ms", "of the window", "stretches", "longest, ms", "ms a step"), rows, chart="idle"
    )


def _ranks(summary: ProfileSummary) -> Block:
    alignment = summary.alignment
    if not alignment:
        return Block("Ranks")
    rows = tuple(
        (
            str(each.rank),
            figures.percent(each.compute_share),
            figures.percent(each.communication_share),
            number(each.communication_us),
            number(each.waiting_us),
            number(each.transfer_us),
            str(each.last_to_arrive),
            number(each.caused_waiting_us),
        )
        for each in summary.ranks
    )
    notes = [f"{alignment.collectives} collectives matched over {len(alignment.ranks)} ranks; clocks {alignment.clock}"]
    for each in alignment.stragglers:
        notes.append(
            f"rank {each.rank} came last to {each.last_to_arrive} of {each.of_collectives} and caused "
            f"{figures.percent(each.share_of_waiting)} of the waiting"
        )
    columns = ("rank", "compute", "communication", "ms in collectives", "waiting", "transfer", "came last", "made others wait, ms")
    return Block("Ranks", columns, rows, notes=tuple(notes), chart="waiting")


def _communication(summary: ProfileSummary, top_k: int) -> Block:
    rows = tuple(
        (
            each.collective,
            f"{each.count:,}",
            number(each.total_duration),
            number(each.waiting_us),
            number(each.transfer_us),
            number(each.exposed_us),
            figures.cell(each.algorithm_bandwidth_gb_s),
            figures.cell(each.bus_bandwidth_gb_s),
        )
        for each in summary.communication_ops[:top_k]
    )
    overlap = summary.overlap
    notes = (
        (
            f"beside computing: {figures.percent(overlap.overlap_share)}; exposed {ms(overlap.exposed_us)}, "
            f"of which {ms(overlap.blocking_us)} held computing up",
        )
        if overlap
        else ()
    )
    return Block(
        "Collectives", ("collective", "count", "ms", "waiting", "transfer", "exposed", "algorithm GB/s", "bus GB/s"), rows, notes=notes
    )


def _sites(summary: ProfileSummary, top_k: int) -> Block:
    rows = tuple(
        (
            f"{site.file}:{site.line}",
            site.function,
            number(site.host_duration),
            figures.percent(site.host_share),
            number(site.backward_duration),
            number(site.device_duration),
            site.hottest_call or "",
        )
        for site in summary.source_sites[:top_k]
    )
    columns = ("file and first line", "function", "host, ms", "of the window", "backward of it", "device, ms", "hottest call in it")
    return Block("Functions of the program, with the backward of what they compute", columns, rows)


def _ops(summary: ProfileSummary, top_k: int) -> Block:
    rows = tuple(
        (op.name, op.family, f"{op.count:,}", number(op.exclusive_duration), figures.percent(op.share_of_total), op.launched_by or "")
        for op in summary.hot_ops[:top_k]
    )
    return Block(f"Top {len(rows)} ops by exclusive time", ("op", "family", "count", "ms", "share", "launched by"), rows, chart="ops")


def _families(summary: ProfileSummary, top_k: int) -> Block:
    rows = tuple(
        (each.family, f"{each.count:,}", number(each.exclusive_duration), figures.percent(each.share_of_total))
        for each in summary.semantic_families[:top_k]
    )
    return Block("Families", ("family", "count", "ms", "share"), rows)


def _gaps(summary: ProfileSummary, top_k: int) -> Block:
    rows = tuple(
        (
            gap.payload_op,
            gap.marker_op if gap.marker_op != gap.payload_op else "the same",
            f"{gap.count:,}",
            number(gap.total_gap_duration),
            number(gap.max_gap_duration),
            figures.words(next(iter(gap.causes), "")),
            gap.host_activity[0].name if gap.host_activity else "",
        )
        for gap in summary.gap_before_ops[:top_k]
    )
    return Block("Idle time before ops", ("payload op", "marker op", "gaps", "ms", "longest, ms", "cause", "the host was in"), rows)


def _regions(summary: ProfileSummary, limit: int) -> Block:
    rows = tuple(
        ("· " * each.depth + each.path, f"{each.count:,}", number(each.inclusive_duration), number(each.exclusive_duration))
        for each in summary.hierarchical_regions[:limit]
    )
    basis = summary.hierarchical_regions[0].basis if rows else "host"
    return Block(f"Regions by {basis} time", ("region", "count", "inclusive, ms", "exclusive, ms"), rows)


def _copies(summary: ProfileSummary) -> Block:
    rows = tuple(
        (
            each.direction,
            MEMORY[each.pinned],
            f"{each.count:,}",
            number(each.total_duration),
            figures.cell(None if each.bytes_total is None else each.bytes_total / 1e6),
            figures.cell(each.bandwidth_gb_s),
            number(each.exposed_us),
        )
        for each in summary.copies
    )
    return Block("Copies", ("direction", "host memory", "count", "ms", "MB", "GB/s", "exposed, ms"), rows)


def _launches(summary: ProfileSummary) -> Block:
    found, graphs = summary.launches, summary.cuda_graphs
    if not found:
        return Block("Launches")
    notes = [
        f"{found.kernels:,} kernels, {figures.number(found.mean_kernel_us)} µs on average, "
        f"{figures.percent(found.short_kernels_share)} under 10 µs",
        f"from the call to the kernel on an idle stream: {figures.number(found.launch_latency.median)} µs "
        f"(median of {found.launch_latency.count:,})"
        if found.launch_latency.count
        else "from the call to the kernel on an idle stream: not measured, no stream was idle",
        f"{found.synchronizing_calls:,} synchronizing calls, {ms(found.synchronizing_us)}",
    ]
    if graphs:
        notes.append(
            f"{graphs.launches:,} graph launches with {graphs.kernels:,} kernels, "
            f"{figures.percent(graphs.device_share)} of the kernels' time"
        )
    return Block("Launches", notes=tuple(notes))


def _memory(summary: ProfileSummary) -> Block:
    rows = tuple(
        (
            use.device if use.rank is None else f"rank {use.rank}, {use.device}",
            mb(use.peak_bytes),
            mb(use.reserved_peak_bytes),
            figures.percent(use.fragmentation),
            mb(use.growth_bytes),
            use.ops[0].name if use.ops else "",
        )
        for use in summary.memory
    )
    columns = ("device", "peak, MB", "reserved, MB", "not allocated of it", "growth, MB", "allocated most before the peak")
    return Block("Memory", columns, rows)


def mb(size: int | None) -> str:
    """Bytes as megabytes for a cell."""
    return figures.cell(None if size is None else size / 1e6)


def _xprof(summary: ProfileSummary) -> Block:
    return Block("What xprof says", notes=summary.xprof.bottlenecks if summary.xprof else ())
