"""Questions about a summary in words. The same question of the same summary has one answer.

Questions are recognised by their words; the literal table below is the list of what can be answered, and is what an unknown question gets.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trainflash.errors import UsageError
from trainflash.profile.selecting import TOP
from trainflash.schema import to_plain
from trainflash.schema.profile_changes import ProfileAnswer
from trainflash.schema.profiles import ProfileSummary

MOST_CLOSE = 5


@dataclass(frozen=True)
class Question:
    """One kind of question: how it may be worded, an example, and who answers it."""

    query_type: str
    pattern: re.Pattern[str]
    example: str
    answer: Callable[[ProfileSummary, str, int], tuple[str, Sequence[Any], dict[str, Any]]]


def ask(summary: ProfileSummary, question: str, top_k: int = TOP) -> ProfileAnswer:
    """The answer to a question in words. Raises `UsageError` that lists what can be asked for one that is not understood."""
    for known in QUESTIONS:
        if known.pattern.search(question):
            said, rows, facts = known.answer(summary, question, _limit(question, top_k))
            return ProfileAnswer(question, known.query_type, summary.digest, said, tuple(to_plain(row) for row in rows), facts)
    raise UsageError(f"this question is not understood: {question!r}", f"ask one of: {'; '.join(known.example for known in QUESTIONS)}")


def _limit(question: str, top_k: int) -> int:
    said = re.search(r"\b(?:top|first|worst|largest)\s+(\d+)\b", question, re.IGNORECASE)
    return int(said.group(1)) if said else top_k


def _target(question: str, *keywords: str) -> str | None:
    """What stands behind the first of the keywords that occurs, without quotes and the word op."""
    for keyword in keywords:
        found = re.search(rf"\b{keyword}\b(.*)$", question, re.IGNORECASE | re.DOTALL)
        if found:
            rest = re.sub(r"^\s*(?:the\s+)?(?:op(?:eration)?|kernel)\b", "", found.group(1), flags=re.IGNORECASE).strip(" \t\n\"'`?!,")
            rest = rest.removesuffix(".") if not re.search(r"\.\d*$", rest) else rest
            if rest:
                return rest
    return None


def _matching(rows: Sequence[Any], names: Callable[[Any], Sequence[str]], target: str) -> list[Any]:
    """Rows of that name, else those whose name holds it."""
    wanted = target.lower()
    exact = [row for row in rows if wanted in {name.lower() for name in names(row)}]
    return exact or [row for row in rows if any(wanted in name.lower() for name in names(row))]


def _close(target: str, known: Sequence[str]) -> list[str]:
    return difflib.get_close_matches(target, sorted(set(known)), n=MOST_CLOSE, cutoff=0.3)


def _ms(us: float | None) -> str:
    return "not measured" if us is None else f"{us / 1000:,.3f} ms"


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _percent(share: float | None) -> str:
    return "not measured" if share is None else f"{share * 100:.1f} %"


def _gap(summary: ProfileSummary, question: str, limit: int):
    target = _target(question, "before", "preceding", "ahead of")
    if target is None:
        said = f"{len(summary.gap_before_ops)} groups of gaps, longest sum first"
        if summary.gap_before_ops:
            longest = max(summary.gap_before_ops, key=lambda gap: gap.max_gap_duration)
            said += f"; the longest gap takes {_ms(longest.max_gap_duration)}, before {longest.payload_op}"
        return said, summary.gap_before_ops[:limit], {"target": None}
    found = _matching(summary.gap_before_ops, lambda gap: (gap.payload_op, gap.marker_op), target)
    if not found:
        close = _close(target, [name for gap in summary.gap_before_ops for name in (gap.payload_op, gap.marker_op)])
        return f"no listed gap stands before {target}", (), {"target": target, "close_names": close}
    contexts = [to_plain(each) for each in summary.gap_region_contexts if any(each.op_name == gap.name for gap in found)]
    first = found[0]
    cause = next(iter(first.causes), "unknown")
    doing = first.host_activity[0].name if first.host_activity else "nothing recorded"
    said = (
        f"{first.count} gaps of together {_ms(first.total_gap_duration)} before {first.payload_op}"
        + (f" (first op after the gap: {first.marker_op})" if first.marker_op != first.payload_op else "")
        + f"; mainly {cause}; the host was in {doing}"
    )
    return (
        said,
        found[:limit],
        {"target": target, "payload_op": first.payload_op, "marker_op": first.marker_op, "context": contexts[:limit]},
    )


def _context(summary: ProfileSummary, question: str, limit: int):
    target = _target(question, "op", "operation", "kernel", "for", "of")
    if target is None:
        return "regions in which the device waited", summary.gap_region_contexts[:limit], {"target": None}
    ops = _matching([*summary.hot_ops, *summary.host_ops], lambda op: (op.name, op.canonical_name), target)[:limit]
    gaps = _matching(summary.gap_before_ops, lambda gap: (gap.payload_op, gap.marker_op), target)[:limit]
    contexts = _matching(summary.gap_region_contexts, lambda each: (each.op_name,), target)[:limit]
    facts: dict[str, Any] = {
        "target": target,
        "gaps": [to_plain(gap) for gap in gaps],
        "regions": [to_plain(each) for each in contexts],
    }
    if not ops and not gaps:
        known = [op.name for op in (*summary.hot_ops, *summary.host_ops)] + [gap.name for gap in summary.gap_before_ops]
        return f"{target} is not among the listed ops", (), {**facts, "close_names": _close(target, known)}
    parts = []
    if ops:
        op = ops[0]
        parts.append(f"{op.name}: {op.count} times, {_ms(op.exclusive_duration)}, {op.family}")
        parts += [f"in {op.tf_op_path}"] if op.tf_op_path else []
        parts += [f"launched by {op.launched_by}"] if op.launched_by else []
        parts += [f"at {op.source_file}"] if op.source_file else []
    if gaps:
        parts.append(f"{_ms(sum(gap.total_gap_duration for gap in gaps))} idle before it")
    if contexts:
        parts.append(f"waited for in {contexts[0].region_path}")
    return "; ".join(parts), ops, facts


def _regions(summary: ProfileSummary, question: str, limit: int):
    rows = summary.hierarchical_regions
    if not rows:
        return "the trace names no regions; named_scope, record_function or NVTX ranges would", (), {}
    basis = "device time of what is launched inside" if rows[0].basis == "device" else "host time"
    return f"{len(rows)} regions by {basis}; largest: {rows[0].path}", rows[:limit], {"basis": rows[0].basis}


def _sites(summary: ProfileSummary, question: str, limit: int):
    rows = summary.source_sites
    if not rows:
        return "the trace has no Python frames; `trainflash profile capture --stacks` records them", (), {}
    first = rows[0]
    device = f", {_percent(first.device_share)} of the device's time" if first.device_share is not None else ""
    said = f"{first.function} ({first.file}:{first.line}) takes the most: {_percent(first.host_share)} of the window{device}"
    return said + (f"; most of it in {first.hottest_call}" if first.hottest_call else ""), rows[:limit], {}


def _next(summary: ProfileSummary, question: str, limit: int):
    rows = summary.optimization_candidates
    if not rows:
        return "nothing large enough to be listed stands out", (), {}
    first = rows[0]
    knobs = f" (knobs: {', '.join(first.knobs)})" if first.knobs else ""
    worth = f", {_percent(first.share)} of the time" if first.share is not None else ""
    said = f"{first.title}{worth}: {first.suggestions[0]}{knobs}. Read more: trainflash explain {first.finding}"
    return said, rows[:limit], {"findings": [row.finding for row in rows]}


def _dominating(summary: ProfileSummary, question: str, limit: int):
    breakdown = summary.time_breakdown
    compute, communication = breakdown.compute.share_of_total, breakdown.communication.share_of_total
    dominant = "communication" if communication > compute else "compute"
    facts: dict[str, Any] = {"dominant": dominant, "compute_share": compute, "communication_share": communication}
    facts |= {"host_share": breakdown.host.share_of_total, "stall_share": breakdown.stall.share_of_total}
    said = f"{dominant} dominates: compute {_percent(compute)}, communication {_percent(communication)} of the window"
    rest = breakdown.host.share_of_total + breakdown.stall.share_of_total
    if rest > max(compute, communication):
        said += f"; but most of it, {_percent(rest)}, the device did nothing"
    worst = summary.communication_ops[0] if summary.communication_ops else None
    if worst:
        facts["worst_collective"] = worst.collective
        said += f". The worst collective is {worst.collective}: {_ms(worst.total_duration)} in {worst.count} calls"
        if worst.waiting_us is not None:
            said += f", of which {_ms(worst.waiting_us)} waiting for later ranks"
    if summary.overlap:
        facts |= {"exposed_us": summary.overlap.exposed_us, "blocking_us": summary.overlap.blocking_us}
    return said, summary.communication_ops[:limit], facts


def _top(summary: ProfileSummary, question: str, limit: int):
    lowered = question.lower()
    host = re.search(r"\b(?:host|cpu)\b", lowered)
    field = (
        "total_duration"
        if "total" in lowered or "inclusive" in lowered
        else "avg_duration"
        if re.search(r"\b(?:average|avg|mean)\b", lowered)
        else None
    )
    field = field or ("count" if re.search(r"\b(?:count|often|frequent)", lowered) else "exclusive_duration")
    rows = sorted(summary.host_ops if host else summary.hot_ops, key=lambda op: (-getattr(op, field), op.name))[:limit]
    if not rows:
        return "no op was recorded", (), {}
    first = rows[0]
    said = {
        "exclusive_duration": f"takes the most: {_ms(first.exclusive_duration)} in {first.count} calls",
        "total_duration": f"takes the most with what it contains: {_ms(first.total_duration)} in {first.count} calls",
        "avg_duration": f"takes the longest a call: {_ms(first.avg_duration)}, {first.count} times",
        "count": f"is called most often: {first.count} times, together {_ms(first.exclusive_duration)}",
    }[field]
    return f"{first.name} {said}", rows, {"sorted_by": field}


def _steps(summary: ProfileSummary, question: str, limit: int):
    steady = summary.step_time.steady_state_steps
    facts = {"step_time": to_plain(summary.step_time) | {"steps": []}}
    if not steady.count:
        return "the trace marks no steps", (), facts
    said = f"a step takes {_ms(steady.median)} (median of {steady.count}; {summary.step_time.warmup_steps_ignored} warm-up steps left out)"
    for each in summary.step_time.classes:
        said += f"; {each.name}: {_ms(each.representative_duration)}, {_percent(each.fraction_of_steady)} of them"
    rows = summary.step_time.steps
    way = re.search(r"\b(?:(slowest|longest|worst)|fastest|shortest)\b", question, re.IGNORECASE)
    if way and rows:
        rows = sorted(rows, key=lambda each: (-each.duration_us if way[1] else each.duration_us, each.number))
        said = f"step {rows[0].number} is the {way[0].lower()}: {_ms(rows[0].duration_us)}{' (warm-up)' if rows[0].warmup else ''}; {said}"
    return said, rows[:limit], facts


def _idle(summary: ProfileSummary, question: str, limit: int):
    idle = summary.idle
    if idle is None:
        return "no device is in this trace", (), {}
    whole = idle.idle_us + (idle.waiting_us or 0.0)
    said = f"devices did nothing useful for {_ms(whole)} of {_ms(idle.window_us)}"
    if idle.causes:
        said += f"; mostly {idle.causes[0].cause}: {_ms(idle.causes[0].total_us)}, {_percent(idle.causes[0].share_of_window)} of the window"
    return said, idle.causes[:limit], {"idle_us": idle.idle_us, "waiting_us": idle.waiting_us, "window_us": idle.window_us}


def _ranks(summary: ProfileSummary, question: str, limit: int):
    alignment = summary.alignment
    if alignment is None:
        return "one rank alone cannot tell waiting from transfer; profile all ranks", summary.ranks[:limit], {}
    whole = alignment.waiting_us + alignment.transfer_us
    said = (
        f"{_percent(alignment.waiting_us / whole if whole else 0.0)} of the time in {alignment.collectives} shared collectives is waiting"
    )
    if alignment.stragglers:
        first = alignment.stragglers[0]
        said += f"; rank {first.rank} came last to {first.last_to_arrive} of {first.of_collectives}"
        said += f", and caused {_percent(first.share_of_waiting)} of it"
    return said, summary.ranks[:limit], {"alignment": to_plain(alignment)}


def _copies(summary: ProfileSummary, question: str, limit: int):
    if not summary.copies:
        return "no copy was recorded", (), {}
    first = summary.copies[0]
    memory = {True: " from or to pinned memory", False: " from or to pageable memory", None: ""}[first.pinned]
    said = f"{first.count} {first.direction} copies{memory} take the most: {_ms(first.total_duration)}"
    said += f"; {_ms(sum(each.exposed_us for each in summary.copies))} of all copies ran beside no computing"
    return said, summary.copies[:limit], {}


def _families(summary: ProfileSummary, question: str, limit: int):
    rows = summary.semantic_families
    asked = [row for row in rows if re.search(rf"\b{row.family}\b", question, re.IGNORECASE)]
    if asked:
        first = asked[0]
        said = f"{first.family} takes {_ms(first.exclusive_duration)}, {_percent(first.share_of_total)} of the ops' time"
        return said, asked[:limit], {}
    if re.search(r"\boptimi[sz]ers?\b", question, re.IGNORECASE):
        return "no listed op is an optimizer's", rows[:limit], {}
    said = f"{rows[0].family} is the largest family: {_percent(rows[0].share_of_total)} of the ops' time" if rows else "no op was recorded"
    return said, rows[:limit], {}


def _launches(summary: ProfileSummary, question: str, limit: int):
    found = summary.launches
    if found is None:
        return "no kernel was recorded", (), {"cuda_graphs": None}
    said = f"{found.kernels} kernels of {found.mean_kernel_us} µs on average, {_percent(found.short_kernels_share)} of them under 10 µs"
    if found.launch_latency.median is not None:
        said += f"; {found.launch_latency.median} µs from call to begin on an idle stream"
    graphs = summary.cuda_graphs
    said += f"; {graphs.launches} graph launches" if graphs else "; no CUDA graphs"
    return said, (found,), {"cuda_graphs": to_plain(graphs) if graphs else None}


def _overlap(summary: ProfileSummary, question: str, limit: int):
    found = summary.overlap
    if found is None:
        return "no communication was recorded on a device", (), {}
    said = f"{_percent(found.overlap_share)} of the communication ran beside computing; {_ms(found.exposed_us)} was exposed"
    said += f", of which {_ms(found.blocking_us)} held computing up" if found.blocking_us is not None else ""
    return said, (found,), {}


def _devices(summary: ProfileSummary, question: str, limit: int):
    if not summary.devices:
        return "no device is in this trace", (), {}
    lowest = min(summary.devices, key=lambda each: (each.utilization if each.utilization is not None else 2.0, each.device))
    return f"device {lowest.device} ran kernels {_percent(lowest.utilization)} of the time", summary.devices[:limit], {}


def _quality(summary: ProfileSummary, question: str, limit: int):
    seen = summary.trace_overview
    said = "; ".join(seen.quality_warnings) or "nothing speaks against this trace"
    return said, (seen,), {"suspected_truncation": seen.suspected_truncation}


def _memory(summary: ProfileSummary, question: str, limit: int):
    rows = sorted(summary.memory, key=lambda use: (-use.peak_bytes, use.device))
    if not rows:
        return "no allocation was recorded; torch.profiler records them with profile_memory=True", (), {}
    first = rows[0]
    where = f"rank {first.rank}, {first.device}" if first.rank is not None else first.device
    said = f"{where}: at most {_mb(first.peak_bytes)} allocated" + (f", in {first.peak_op}" if first.peak_op else "")
    said += "" if first.start_bytes is not None else ", above what was allocated as the trace began"
    if first.reserved_peak_bytes is not None:
        said += f"; at most {_mb(first.reserved_peak_bytes)} reserved"
        said += f", {_percent(first.fragmentation)} of it not allocated" if first.fragmentation is not None else ""
    said += f"; {_mb(first.growth_bytes)} more at the end than at the beginning" if first.growth_bytes > 0 else ""
    said += f"; {first.ops[0].name} allocated the most before the peak: {_mb(first.ops[0].allocated_bytes)}" if first.ops else ""
    return said, rows[:limit], {}


def _breakdown(summary: ProfileSummary, question: str, limit: int):
    parts = summary.time_breakdown
    named = [(name, getattr(parts, name)) for name in ("compute", "communication", "copy", "host", "stall", "other")]
    said = ", ".join(f"{name} {_percent(part.share_of_total)}" for name, part in named if part.total_duration)
    return f"{said} ({parts.duration_basis})", (parts,), {}


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


QUESTIONS: tuple[Question, ...] = (
    Question(
        "memory",
        _pattern(r"^(?!.*\b(?:cop(?:y|ies)|pinned|pageable|memcpy)\b).*\b(?:memory|allocat\w*|fragment\w*|oom|peak)\b"),
        "How much memory is used, and which ops allocate it?",
        _memory,
    ),
    Question(
        "pre_op_gap",
        _pattern(
            r"\bgaps?\b.*\b(?:before|preceding|ahead)\b|^\s*(?:show\s+|top\s+|largest\s+)?(?:pre-?op\s+)?gaps?\b|\b(?:longest|largest|biggest|worst|top)\b.*\bgaps?\b"
        ),
        "gap before OP",
        _gap,
    ),
    Question("op_context", _pattern(r"\bcontext\b"), "show context for op OP", _context),
    Question(
        "source_sites", _pattern(r"\bsource\b|\blines?\b|\bfunctions?\b|\bsites?\b"), "Which functions of the source take the time?", _sites
    ),
    Question("hierarchical_regions", _pattern(r"\bhierarch|\bregions?\b|\bscopes?\b|\bmodules?\b"), "show hierarchical regions", _regions),
    Question(
        "optimization_candidates",
        _pattern(r"\btry\b|\bnext\b|\boptimi[sz](?:e|ing|ations?)\b|\bsuggest|\bimprove\b|\bbottleneck"),
        "What should we try next?",
        _next,
    ),
    Question(
        "overlap",
        _pattern(r"^(?!.*\bcop(?:y|ies)\b).*(?:\boverlap|\bexposed\b|\bblocking\b)"),
        "How much communication overlaps with compute?",
        _overlap,
    ),
    Question(
        "stragglers",
        _pattern(r"\bstraggl|\blate\b|\branks?\b|\bwaiting\b(?=.*\bcollectives?\b)|\bcollectives?\b(?=.*\bwaiting\b)"),
        "Which rank is late?",
        _ranks,
    ),
    Question(
        "compute_vs_communication",
        _pattern(r"\bcomm(?:unication)?\b|\bcollectives?\b"),
        "Is comm or compute dominating? Which collective is worst?",
        _dominating,
    ),
    Question("idle", _pattern(r"\bidle\b|\bwait(?:s|ing)?\b|\bstall|\bdoing nothing\b|\bdata.?load"), "Why is the device idle?", _idle),
    Question(
        "copies", _pattern(r"\bcop(?:y|ies)\b|\bmemcpy|\bpinned\b|\bh2d\b|\bd2h\b"), "Which copies are there, and are they pinned?", _copies
    ),
    Question(
        "families", _pattern(r"\bfamil|\boptimi[sz]ers?\b(?!.*\b(?:ops?|kernels?)\b)"), "Which semantic families take the time?", _families
    ),
    Question(
        "launches", _pattern(r"\blaunch|\bgraphs?\b|\bkernels? per\b"), "What is the launch latency? Are there CUDA graphs?", _launches
    ),
    Question(
        "top_ops",
        _pattern(r"\b(?:ops?|operations?|operators?|kernels?|hotspots?|hot)\b"),
        "What are the top 10 ops by exclusive time?",
        _top,
    ),
    Question("step_time", _pattern(r"\bsteps?\b"), "How long is a step? Are there heavy ones?", _steps),
    Question(
        "devices", _pattern(r"^(?!.*\bmemory\b).*(?:\butili[sz]|\bdevices?\b|\bgpus?\b|\bbusy\b)"), "How busy are the devices?", _devices
    ),
    Question("quality", _pattern(r"\bquality\b|\btruncat|\btrust|\bwarnings?\b|\bcomplete\b"), "Can this trace be trusted?", _quality),
    Question("time_breakdown", _pattern(r"\bbreak\s?down\b|\bwhere\b.*\btime\b|\bcompute\b"), "Where does the time go?", _breakdown),
)
