"""What to try next, from a summary alone: each candidate names the same finding and the same knobs that `trainflash diagnose` would.

Rules are functions of one signature in one literal tuple. A rule whose figures are missing says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.schema import Evidence
from trainflash.schema.profile_times import IdleCause
from trainflash.schema.profiles import OptimizationCandidate, ProfileSummary

US_PER_MS = 1000


@dataclass(frozen=True)
class _Case:
    summary: ProfileSummary
    limits: Thresholds

    def cause(self, name: str) -> IdleCause | None:
        """The idle cause of this name, if it is large enough to be listed."""
        idle = self.summary.idle
        found = next((each for each in idle.causes if each.cause == name), None) if idle else None
        return found if found and found.share_of_window >= self.limits.listed else None

    def share_of_device(self, family: str) -> float:
        """The family's part of the window: its share of device time times the share of the window in which kernels ran."""
        breakdown = self.summary.time_breakdown
        working = breakdown.compute.share_of_total + breakdown.communication.share_of_total + breakdown.copy.share_of_total
        found = next((each for each in self.summary.semantic_families if each.family == family), None)
        return found.share_of_total * min(working, 1.0) if found else 0.0

    def names(self) -> str:
        """Everything that the summary quotes from the program, for rules that look for a word."""
        summary = self.summary
        paths = [region.path for region in summary.hierarchical_regions]
        doing = [activity.name for gap in summary.gap_before_ops for activity in gap.host_activity]
        return "\n".join([*paths, *doing, *(op.name for op in summary.host_ops)])


def candidates(summary: ProfileSummary, limits: Thresholds = DEFAULT) -> tuple[OptimizationCandidate, ...]:
    """All candidates, the one with the largest share first."""
    case = _Case(summary, limits)
    found = [candidate for rule in RULES for candidate in rule(case)]
    if not found and summary.trace_overview.num_complete_events:
        found = list(_healthy(case))
    return tuple(sorted(found, key=lambda each: (-(each.share or 0.0), each.candidate_id)))


def _loading(case: _Case) -> Iterator[OptimizationCandidate]:
    cause = case.cause("data_loading")
    if case.summary.idle is None:
        yield from _loading_on_the_host(case)
    if not cause:
        return
    names = case.names()
    single = "_SingleProcessDataLoaderIter" in names
    how = "in the training process itself" if single else "by the loader"
    suggestions = [
        "load in worker processes" if single else "give the loader more workers, or let them prefetch more",
        "remember results that are computed again",
    ]
    yield _candidate(
        "data_loading", "The device waits for batches", f"Batches are made {how} while nothing runs on the device.", "input_cpu",
        ("dataloader_workers", "memoize_function") if single else ("dataloader_workers", "prefetch_factor", "memoize_function"),
        cause.share_of_window, suggestions, _idle_figures(cause),
    )  # fmt: skip


def _loading_on_the_host(case: _Case) -> Iterator[OptimizationCandidate]:
    """Without a device the training thread itself waits for batches, or makes them."""
    steps = case.summary.step_time
    usual = steps.steady_state_steps.mean or steps.all_steps.mean
    if steps.data_loading_mean_us is None or not usual:
        return
    share = steps.data_loading_mean_us / usual
    if share >= case.limits.listed:
        yield _candidate(
            "data_loading", "The training waits for batches", "In each step the training thread fetches its batch while no operator runs.",
            "input_cpu", ("dataloader_workers", "memoize_function"), min(share, 1.0),
            ["load in worker processes, or more of them", "remember results that are computed again"],
            [Evidence("data loading in a step", round(steps.data_loading_mean_us / US_PER_MS, 3), "ms")],
        )  # fmt: skip


def _launching(case: _Case) -> Iterator[OptimizationCandidate]:
    cause, launches = case.cause("launch_bound"), case.summary.launches
    if not cause:
        return
    figures = _idle_figures(cause)
    if launches:
        figures += [Evidence("kernels", launches.kernels)]
        if launches.mean_kernel_us is not None:
            figures.append(Evidence("mean kernel", launches.mean_kernel_us, "µs"))
        if launches.short_kernels_share is not None:
            figures.append(Evidence("kernels under 10 µs", launches.short_kernels_share, "share"))
    suggestions = [
        "fuse small operations: torch.compile, CUDA graphs, fused or foreach optimizers",
        "more work per launch: larger micro-batches",
    ]
    yield _candidate(
        "launch_bound", "The device waits for the host to launch work",
        "Between kernels the host runs operators and Python that prepare the next launch.", "launch_overhead", (),
        cause.share_of_window, suggestions, figures,
    )  # fmt: skip


def _synchronising(case: _Case) -> Iterator[OptimizationCandidate]:
    cause, launches = case.cause("synchronization"), case.summary.launches
    if not cause:
        return
    figures = _idle_figures(cause)
    if launches:
        figures.append(Evidence("synchronizing calls", launches.synchronizing_calls))
    yield _candidate(
        "synchronization", "The host waits for the device, then the device for the host",
        "A synchronizing call lets the queue run dry; the device idles until it is filled again.", "sync_point", (),
        cause.share_of_window, ["read values (.item(), .cpu(), print of a tensor) less often, or later"], figures,
    )  # fmt: skip


def _copies(case: _Case) -> Iterator[OptimizationCandidate]:
    window = case.summary.time_breakdown.window_us
    unpinned = [each for each in case.summary.copies if each.direction == "H2D" and each.pinned is False]
    exposed = sum(each.exposed_us for each in unpinned)
    if not unpinned and any(each.pinned for each in case.summary.copies if each.direction == "H2D"):
        return  # what waits are other calls: making pinned memory, say
    waiting = case.cause("copy")
    part = exposed / window + (waiting.share_of_window if waiting else 0.0) if window else 0.0
    if part < case.limits.unpinned:
        return
    total = sum(each.bytes_total or 0 for each in unpinned)
    figures = [Evidence("exposed copies", round(exposed / US_PER_MS, 3), "ms"), Evidence("copied", round(total / 1e6, 3), "MB")]
    yield _candidate(
        "pageable_copies", "Copies to the device from pageable memory", "Such copies go through a staging buffer and hold up the host.",
        "h2d", ("pin_memory",) if unpinned else (), part, ["pin the batches, and copy with non_blocking=True"], figures,
    )  # fmt: skip


def _late_rank(case: _Case) -> Iterator[OptimizationCandidate]:
    alignment = case.summary.alignment
    if not alignment or alignment.waiting_us <= 0:
        return
    whole = alignment.waiting_us + alignment.transfer_us
    waiting = alignment.waiting_us / whole
    idle, window = case.summary.idle, case.summary.time_breakdown.window_us
    inside = idle.waiting_us if idle and idle.waiting_us is not None else alignment.waiting_us  # warm-up's does not count
    part = min(1.0, inside / window) if window else 0.0
    if waiting < case.limits.waiting or part < case.limits.listed:
        return
    worst = alignment.stragglers[0] if alignment.stragglers else None
    figures = [
        Evidence("waiting in collectives", round(waiting, 6), "share"),
        Evidence("transfer", round(alignment.transfer_us / US_PER_MS, 3), "ms"),
    ]
    named = ""
    if worst:
        figures.append(Evidence("rank that comes last most", worst.rank))
        figures.append(Evidence("collectives that it comes to last", f"{worst.last_to_arrive} of {worst.of_collectives}"))
        named = f" Rank {worst.rank} comes last most often."
    yield _candidate(
        "late_rank", "Collectives wait for a late rank",
        f"The time in communication is waiting, not transfer: a faster network would gain nothing.{named}", "rank_straggler", (), part,
        ["look at what the late rank does before the collective: its input, its host, its share of the work"], figures,
    )  # fmt: skip


def _communication(case: _Case) -> Iterator[OptimizationCandidate]:
    summary, overlap = case.summary, case.summary.overlap
    if not overlap or not summary.time_breakdown.window_us:
        return
    waiting = summary.idle.waiting_us if summary.idle and summary.idle.waiting_us is not None else None
    held = overlap.blocking_us if overlap.blocking_us is not None else overlap.exposed_us
    part = max(held - (waiting or 0.0), 0.0) / summary.time_breakdown.window_us
    if part < case.limits.listed:
        return
    figures = [Evidence("exposed communication", round(overlap.exposed_us / US_PER_MS, 3), "ms")]
    if overlap.overlap_share is not None:
        figures.append(Evidence("overlapped with computing", overlap.overlap_share, "share"))
    if waiting is None:
        figures.append(Evidence("waiting in it", "unknown: the other ranks were not traced"))
    worst = summary.communication_ops[0] if summary.communication_ops else None
    if worst:
        figures.append(Evidence("costliest collective", worst.collective))
    yield _candidate(
        "exposed_communication", "Communication that nothing computes beside", "Computing stands still while collectives run.",
        "communication", (), part,
        ["overlap it (bucket sizes, prefetch of shards), send fewer bytes, or synchronize less often"], figures,
    )  # fmt: skip


def _untraced(case: _Case) -> Iterator[OptimizationCandidate]:
    cause = case.cause("no_work")
    if not cause:
        return
    yield _candidate(
        "untraced_host", "The device waits for code that the trace does not show",
        "For a millisecond or more at a time no operator and no call was recorded on the threads that drive the device.", "host_code", (),
        cause.share_of_window, ["profile with stacks, or run trainflash diagnose, which names the lines"],
        _idle_figures(cause),
    )  # fmt: skip


def _optimizer(case: _Case) -> Iterator[OptimizationCandidate]:
    region = next((each for each in case.summary.hierarchical_regions if "Optimizer.step" in each.path.rsplit("/", 1)[-1]), None)
    steps, window = case.summary.step_time, case.summary.time_breakdown.window_us
    host = region.host_inclusive_us if region else None
    if not host or not window:
        return
    if case.summary.idle is not None:  # what the host does while the device works costs nothing
        breakdown = case.summary.time_breakdown
        idle = breakdown.host.total_duration + breakdown.stall.total_duration
        host = min(host, idle + (region.inclusive_duration if region and region.basis == "device" else 0.0))
    if host / window < case.limits.optimizer:
        return
    count = sum(1 for step in steps.steps if not step.warmup)
    yield _candidate(
        "optimizer", "The optimizer's step takes long", "It launches many small kernels, one after another.", "optimizer",
        ("optimizer_fused", "optimizer_foreach", "zero_grad_set_to_none"), host / window * case.limits.optimizer_saving,
        ["use the fused or the foreach implementation"],
        [Evidence("in Optimizer.step", round(host / US_PER_MS, 3), "ms"), Evidence("steps", count)],
    )  # fmt: skip


def _layout(case: _Case) -> Iterator[OptimizationCandidate]:
    part = case.share_of_device("layout")
    if part < case.limits.layout:
        return
    example = next(each.example_op for each in case.summary.semantic_families if each.family == "layout")
    yield _candidate(
        "layout", "Tensors change their layout", "Kernels that only rearrange memory take a part of the device's time.", "memory_format",
        (), part, ["keep one memory format (channels_last for convolutions)"], [Evidence("such as", example or "")],
    )  # fmt: skip


def _attention(case: _Case) -> Iterator[OptimizationCandidate]:
    part = case.share_of_device("softmax") * case.limits.attention_saving
    fused = any("flash" in op.name.lower() or "fmha" in op.name.lower() for op in case.summary.hot_ops)
    products = any(op.launched_by in {"aten::bmm", "aten::baddbmm"} for op in case.summary.hot_ops)
    if part < case.limits.listed or fused or not products:
        return
    yield _candidate(
        "attention", "Attention is written out", "Softmax kernels beside batched products, and no fused attention kernel.",
        "attention_kernel", (), part, ["scaled_dot_product_attention"], [Evidence("softmax", round(part, 6), "share")],
    )  # fmt: skip


def _single_precision(case: _Case) -> Iterator[OptimizationCandidate]:
    slow = [op for op in case.summary.hot_ops if op.family in {"matmul", "convolution"} and _full_precision(op.name)]
    whole = sum(op.exclusive_duration for op in case.summary.hot_ops)
    part = sum(op.exclusive_duration for op in slow) / whole * case.summary.time_breakdown.compute.share_of_total if whole else 0.0
    part *= case.limits.half_saving
    if part < case.limits.listed:
        return
    yield _candidate(
        "precision", "Products in 32-bit floats without tensor cores", "Kernels of this name use the slow units.", "precision", (), part,
        ["TF32 (torch.set_float32_matmul_precision('high')) or automatic mixed precision"], [Evidence("such as", slow[0].name)],
    )  # fmt: skip


def _full_precision(name: str) -> bool:
    return any(word in name for word in ("sgemm", "scudnn", "_fp32_", "simt_s")) and "tf32" not in name and "tensorop" not in name


def _healthy(case: _Case) -> Iterator[OptimizationCandidate]:
    summary = case.summary
    if summary.devices and summary.time_breakdown.compute.share_of_total > 0.5:
        hottest = summary.hot_ops[0].canonical_name if summary.hot_ops else "none"
        yield _candidate(
            "compute", "The device computes", "No cost around it is large enough to be listed.", "compute", (), None,
            ["look at the costliest operations themselves"], [Evidence("costliest op", hottest)],
        )  # fmt: skip
    elif not summary.devices and summary.source_sites and (summary.source_sites[0].host_share or 0.0) >= case.limits.function:
        first = summary.source_sites[0]
        figures = [Evidence("of the window", first.host_share or 0.0, "share")]
        figures += [Evidence("hottest call", first.hottest_call)] if first.hottest_call else []
        yield _candidate(
            "costliest_function", f"{first.function} ({first.file}:{first.line}) takes the most of the host's time",
            "No device work is recorded, so the trace tells where the host computes, not whether it could be faster.", "compute", (), None,
            ["trainflash diagnose holds its operators against what this machine needs for them at least"], figures,
        )  # fmt: skip


RULES = (
    _loading,
    _launching,
    _synchronising,
    _copies,
    _late_rank,
    _communication,
    _untraced,
    _optimizer,
    _layout,
    _attention,
    _single_precision,
)


def _idle_figures(cause: IdleCause) -> list[Evidence]:
    figures = [Evidence("idle", round(cause.total_us / US_PER_MS, 3), "ms"), Evidence("of the window", cause.share_of_window, "share")]
    if cause.per_step_us is not None:
        figures.append(Evidence("a step", round(cause.per_step_us / US_PER_MS, 3), "ms"))
    return figures


def _candidate(
    candidate_id: str,
    title: str,
    rationale: str,
    finding,
    knobs: tuple[str, ...],
    part: float | None,
    suggestions: list[str],
    figures: list[Evidence],
) -> OptimizationCandidate:
    return OptimizationCandidate(
        candidate_id=candidate_id,
        title=title,
        rationale=rationale,
        evidence=tuple(_words(figure) for figure in figures),
        suggestions=tuple(suggestions),
        finding=finding,
        knobs=knobs,
        share=None if part is None else round(part, 6),
        ceiling_speedup=round(1 / (1 - part), 4) if part is not None and 0 < part < 0.99 else None,
        figures=tuple(replace(figure, value=float(figure.value)) if isinstance(figure.value, int) else figure for figure in figures),
    )


def _words(figure: Evidence) -> str:
    if figure.unit == "share" and not isinstance(figure.value, str):
        return f"{figure.name}: {figure.value * 100:.1f} %"
    return f"{figure.name}: {figure.value} {figure.unit}".rstrip()
