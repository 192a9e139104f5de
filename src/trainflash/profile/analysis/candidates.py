"""What to try next, from a summary alone: each candidate names the same finding and the same knobs that `trainflash diagnose` would.

Rules are functions of one signature in one literal tuple. A rule whose figures are missing says nothing. They stand in one file, long as it
is, because what one rule names the next must not name again: they are read together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trainflash.profile.analysis import products, words
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.schema import Evidence
from trainflash.schema.boards import Board
from trainflash.schema.profile_ops import CopyStat
from trainflash.schema.profile_times import IdleCause
from trainflash.schema.profiles import OptimizationCandidate, ProfileSummary

US_PER_MS, NS_PER_US = 1000, 1000
_FUSED = frozenset({"Adam", "AdamW", "SGD", "Adagrad"})  # classes of torch.optim that have such an implementation
_MOVING = frozenset({"elementwise", "normalization", "softmax", "reduction", "loss", "random"})  # families
_KERNELS = ("precision", "attention_kernel")  # findings that say how kernels compute
_FOREACH = frozenset({"NAdam", "RAdam", "Adamax", "RMSprop", "Adadelta", "ASGD", "Rprop"})


_ADVICE = {
    "fuse": {
        "torch": "fuse small operations: torch.compile, CUDA graphs, fused or foreach optimizers",
        "jax": "compile more at once: one jax.jit around the whole step, its buffers donated",
        "": "fuse small kernels, or capture them into a graph that is launched at once",
    },
    "fuse_kernels": {
        "torch": "fewer and larger kernels: fuse them with torch.compile",
        "jax": "fewer and larger kernels: one jax.jit around what is computed together",
        "": "fewer and larger kernels",
    },
    "later": {
        "nsys": "record later: nsys profile --delay, or --capture-range=cudaProfilerApi around steps that others went before",
        "jax": "begin the trace behind a few steps: jax.profiler.start_trace after block_until_ready",
        "": "profile later: torch.profiler.schedule(wait=…, warmup=…), three steps or more",
    },
    "stacks": {
        "nsys": "record Python too (nsys profile --python-sampling=true), or run trainflash diagnose, which names the lines",
        "jax": "record Python too: python_tracer_level=1 of jax.profiler's options",
        "": "profile with stacks, or run trainflash diagnose, which names the lines",
    },
    "values": {
        "jax": "read values (float(), np.asarray, print of an array) less often, or later",
        "": "read values (.item(), .cpu(), print of a tensor) less often, or later",
    },
}  # fmt: skip


@dataclass(frozen=True)
class _Case:
    summary: ProfileSummary
    limits: Thresholds

    @property
    def startup_us(self) -> float:
        """What belongs to no steady step."""
        idle = self.summary.idle
        return sum(each.total_us for each in idle.causes if each.cause == "startup") if idle else 0.0

    @property
    def window_us(self) -> float:
        """The window without it: all shares are of this."""
        return max(self.summary.time_breakdown.window_us - self.startup_us, 0.0)

    def part(self, time_us: float) -> float:
        """Share of the window; of nothing it is 0."""
        return min(time_us / self.window_us, 1.0) if self.window_us else 0.0

    def cause(self, name: str) -> IdleCause | None:
        """The idle cause of this name, if it is large enough to be listed."""
        idle = self.summary.idle
        found = next((each for each in idle.causes if each.cause == name), None) if idle else None
        return found if found and self.part(found.total_us) >= self.limits.listed else None

    @property
    def computing(self) -> float:
        """Share of the window in which kernels compute."""
        return self.part(self.summary.time_breakdown.compute.share_of_total * self.summary.time_breakdown.window_us)

    def of_device(self, time_us: float) -> float:
        """The share of the window that kernels of this summed time have: their part of all device time, times that of the window."""
        breakdown = self.summary.time_breakdown
        working = breakdown.compute.share_of_total + breakdown.communication.share_of_total + breakdown.copy.share_of_total
        whole = sum(each.exclusive_duration for each in self.summary.semantic_families)
        return time_us / whole * min(self.part(working * breakdown.window_us), 1.0) if whole else 0.0

    def family_us(self, family: str) -> float:
        """Summed time of a family."""
        return next((each.exclusive_duration for each in self.summary.semantic_families if each.family == family), 0.0)

    @property
    def framework(self) -> str:
        """Whose program this is: torch, jax; "" where nothing tells."""
        summary = self.summary
        if "xplane" in summary.source_format:
            return "jax"
        named = [op.name for op in (*summary.hot_ops, *summary.host_ops)]
        return "torch" if "kineto" in summary.source_format or any("at::native" in name or "aten::" in name for name in named) else ""

    def advice(self, what: str) -> str:
        """The suggestion of this name in the words of the program's framework, or of the tool that recorded it."""
        told = _ADVICE[what]
        return next(told[key] for key in (self.summary.source_format, self.framework, "") if key in told)

    @property
    def card(self) -> Board | None:
        """The registry's row of the devices."""
        return products.card([each.name for each in self.summary.devices])

    def names(self) -> str:
        """Everything that the summary quotes from the program, for rules that look for a word."""
        summary = self.summary
        paths = [region.path for region in summary.hierarchical_regions]
        doing = [activity.name for gap in summary.gap_before_ops for activity in gap.host_activity]
        return "\n".join([*paths, *doing, *(op.name for op in summary.host_ops)])

    def host_was_in(self, cause: str) -> str | None:
        """Where the host mostly was in the gaps of this cause."""
        times: dict[str, float] = {}
        for gap in self.summary.gap_before_ops:
            if next(iter(gap.causes), None) == cause:
                for each in gap.host_activity:
                    times[each.name] = times.get(each.name, 0.0) + each.overlap_us
        return min(times, key=lambda name: (-times[name], name)) if times else None


def candidates(summary: ProfileSummary, limits: Thresholds = DEFAULT) -> tuple[OptimizationCandidate, ...]:
    """All candidates, the one with the largest share first. Where hardly any of the window is left beside start-up, that is all."""
    case = _Case(summary, limits)
    if summary.trace_overview.captured_launches:
        return (_capturing(summary),)
    setting_up = list(_startup(case))
    whole = summary.time_breakdown.window_us
    if setting_up and case.startup_us > limits.startup_most * whole:
        return tuple(setting_up)
    found = [*setting_up, *(candidate for rule in RULES for candidate in rule(case))]
    if not found and summary.trace_overview.num_complete_events:
        found = list(_healthy(case))
    steady = case.window_us / whole if whole else 1.0
    ordered = sorted(found, key=lambda each: (-_worth(each, limits, steady), each.candidate_id))
    return tuple(_within_computing(ordered, limits))


def _within_computing(ordered: list[OptimizationCandidate], limits: Thresholds) -> list[OptimizationCandidate]:
    """That the device computes stands behind what it mostly computes at, where that can be told: the one is why of the other."""
    computing = next((each for each in ordered if each.finding == "compute" and each.share), None)
    if computing is None:
        return ordered
    why = [each for each in ordered if each.finding in _KERNELS and (each.share or 0.0) >= limits.within * (computing.share or 0.0)]
    rest = [each for each in ordered if each is not computing and each not in why]
    at = sum(ordered.index(each) < ordered.index(computing) for each in rest)
    return [*rest[:at], *why, computing, *rest[at:]] if why else ordered


def _worth(candidate: OptimizationCandidate, limits: Thresholds, steady: float) -> float:
    """What it is ranked by: its share, of the whole window; of time in which kernels run only the part that its cure usually saves, or can
    save at most. `steady`: the part of the window that is no start-up."""
    share = candidate.share or 0.0
    if candidate.candidate_id == "startup":
        return share
    share *= steady
    usual = {"precision": limits.half_saving, "attention": limits.attention_saving, "optimizer": limits.optimizer_saving}
    usual["memory_bound"] = limits.fusing_saving
    most = (1 - 1 / candidate.ceiling_speedup) * steady if candidate.ceiling_speedup else share
    return min(share * usual.get(candidate.candidate_id, 1.0), most)


def _capturing(summary: ProfileSummary) -> OptimizationCandidate:
    return _candidate(
        "capture", "A graph is captured here, not run",
        "Launches are written into a graph and run no kernel: how busy a device is cannot be told from this.", "startup", (), None,
        ["profile the replays of the graph"], [Evidence("launches that were captured", summary.trace_overview.captured_launches)],
    )  # fmt: skip


def _startup(case: _Case) -> Iterator[OptimizationCandidate]:
    idle, whole = case.summary.idle, case.summary.time_breakdown.window_us
    found = next((each for each in idle.causes if each.cause == "startup"), None) if idle else None
    if not found or not whole or found.total_us / whole < case.limits.listed:
        return
    if found.longest_us * NS_PER_US < case.limits.one_off_ns and found.total_us < case.limits.mostly * whole:
        return  # the moment before the first work of a short window
    doing = case.host_was_in("startup")
    figures = [
        Evidence("idle", round(found.total_us / US_PER_MS, 3), "ms"),
        Evidence("stretches", found.count),
        Evidence("longest", round(found.longest_us / US_PER_MS, 3), "ms"),
    ] + ([Evidence("the host was in", doing)] if doing else [])
    yield _candidate(
        "startup", "Start-up, or a single stall: no part of a steady step",
        "Libraries that are loaded, first allocations, compilation, or one stall: it does not come again in each step, and is left out "
        "of all other shares.", "startup", (), found.total_us / whole,
        [case.advice("later")], figures, bounded=False,
    )  # fmt: skip


def _loading(case: _Case) -> Iterator[OptimizationCandidate]:
    cause = case.cause("data_loading")
    if case.summary.idle is None:
        yield from _loading_on_the_host(case)
    if not cause:
        return
    names = case.names()
    single, loader = "_SingleProcessDataLoaderIter" in names, "DataLoader" in names
    how = "in the training process itself" if single else "by the loader"
    suggestions = [
        "load in worker processes" if single else "give the loader more workers, or let them prefetch more",
        "remember results that are computed again",
    ]
    yield _candidate(
        "data_loading", "The device waits for batches", f"Batches are made {how} while nothing runs on the device.", "input_cpu",
        () if not loader else ("dataloader_workers",) if single else ("dataloader_workers", "prefetch_factor"),
        case.part(cause.total_us), suggestions, _idle_figures(case, cause),
    )  # fmt: skip


def _loading_on_the_host(case: _Case) -> Iterator[OptimizationCandidate]:
    """Without a device the training thread itself waits for batches, or makes them."""
    steps = case.summary.step_time
    usual = steps.steady_state_steps.mean or steps.all_steps.mean
    if steps.data_loading_mean_us is not None and usual:
        share, figure = (
            steps.data_loading_mean_us / usual,
            Evidence("data loading in a step", round(steps.data_loading_mean_us / US_PER_MS, 3), "ms"),
        )
    elif not steps.steps and not case.summary.devices and case.window_us:
        fetching = [each for each in case.summary.hierarchical_regions if words.is_loading(each.path.rsplit("/", 1)[-1])]
        took = sum(each.host_inclusive_us or 0.0 for each in fetching if not any(other.path in _outside(each.path) for other in fetching))
        share, figure = case.part(took), Evidence("data loading", round(took / US_PER_MS, 3), "ms")
    else:
        return
    if share >= case.limits.listed:
        yield _candidate(
            "data_loading", "The training waits for batches", "The training thread fetches its batch, and trains on nothing meanwhile.",
            "input_cpu", ("dataloader_workers",) if "DataLoader" in case.names() else (), min(share, 1.0),
            ["load in worker processes, or more of them", "remember results that are computed again"], [figure],
        )  # fmt: skip


def _outside(path: str) -> list[str]:
    """The paths of the regions around this one."""
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts))]


def _pausing(case: _Case) -> IdleCause | None:
    """The moments that a device takes to begin queued work, where they are no longer than that."""
    cause = case.cause("queued")
    alone = all(each.streams == 1 for each in case.summary.devices)  # nothing that its stream could wait for
    usual = case.limits.latency_ns / NS_PER_US if alone else case.limits.between_kernels_us
    return cause if cause and cause.total_us < cause.count * usual else None


def _launching(case: _Case) -> Iterator[OptimizationCandidate]:
    cause, pauses, launches = case.cause("launch_bound"), _pausing(case), case.summary.launches
    if not cause:
        return
    figures = _idle_figures(case, cause)
    if pauses:
        figures.append(Evidence("and between queued kernels", round(pauses.total_us / US_PER_MS, 3), "ms"))
    if launches:
        figures += [Evidence("kernels", launches.kernels)]
        if launches.mean_kernel_us is not None:
            figures.append(Evidence("mean kernel", launches.mean_kernel_us, "µs"))
        if launches.short_kernels_share is not None:
            figures.append(Evidence("kernels under 10 µs", launches.short_kernels_share, "share"))
    suggestions = [
        case.advice("fuse"),
        "more work per launch: larger micro-batches",
    ]
    yield _candidate(
        "launch_bound", "The device waits for the host to launch work",
        "Between kernels the host runs operators and Python that prepare the next launch.", "launch_overhead", (),
        case.part(cause.total_us + (pauses.total_us if pauses else 0.0)), suggestions, figures,
    )  # fmt: skip


def _queued(case: _Case) -> Iterator[OptimizationCandidate]:
    cause = case.cause("queued")
    if not cause:
        return
    figures = _idle_figures(case, cause)
    if _pausing(case):
        if not case.cause("launch_bound"):
            yield _candidate(
                "between_kernels", "The device pauses between short kernels", "Their work was queued; it takes a moment to begin each one.",
                "launch_overhead", (), case.part(cause.total_us), [case.advice("fuse_kernels")],
                [*figures, Evidence("stretches", cause.count)],
            )  # fmt: skip
        return
    several = (case.summary.trace_overview.world_size or 1) > case.summary.trace_overview.num_ranks
    suggestions = ["look at what its stream waits for: events of other streams, collectives, host functions, another process"]
    suggestions += ["profile the other ranks too: work behind a collective waits for the last of them"] if several else []
    yield _candidate(
        "queued", "Work that was launched waits on the device", "The host had launched it before: no call of the host is to blame.",
        "stream_wait", (), case.part(cause.total_us), suggestions,
        [*figures, Evidence("longest", round(cause.longest_us / US_PER_MS, 3), "ms")],
    )  # fmt: skip


def _synchronising(case: _Case) -> Iterator[OptimizationCandidate]:
    cause, launches = case.cause("synchronization"), case.summary.launches
    if not cause:
        return
    figures = _idle_figures(case, cause)
    if launches:
        figures.append(Evidence("synchronizing calls", launches.synchronizing_calls))
    yield _candidate(
        "synchronization", "The host waits for the device, then the device for the host",
        "A synchronizing call, or a read of a result, lets the queue run dry; the device idles until it is filled again.", "sync_point", (),
        case.part(cause.total_us), [case.advice("values")], figures,
    )  # fmt: skip


def _pageable(case: _Case) -> Iterator[OptimizationCandidate]:
    unpinned = [each for each in case.summary.copies if each.direction == "H2D" and each.pinned is False and each.recurs is not False]
    exposed = sum(each.exposed_us for each in unpinned)
    waiting = case.cause("copy") if unpinned else None
    part = case.part(exposed + (waiting.total_us if waiting else 0.0))
    if part < case.limits.unpinned:
        return
    yield _candidate(
        "pageable_copies", "Copies to the device from pageable memory", "Such copies go through a staging buffer and hold up the host.",
        "h2d", ("pin_memory",) if "DataLoader" in case.names() else (), part,
        ["pin the batches, and copy with non_blocking=True"], _copied(unpinned),
    )  # fmt: skip


def _copies(case: _Case) -> Iterator[OptimizationCandidate]:
    """Copies of every other kind that nothing computes beside."""
    for name, finding, title, rationale, chosen, suggestions in _COPIES:
        mine = [each for each in case.summary.copies if chosen(each)]
        part = case.part(sum(each.exposed_us for each in mine))
        if part >= case.limits.listed:
            yield _candidate(name, title, rationale, finding, (), part, list(suggestions), _copied(mine))


_COPIES = (
    (
        "host_to_device", "h2d", "Copies to the device that nothing computes beside",
        "From pinned memory, or memory of unknown kind. Large ones in each step are weights or states that are kept on the host.",
        lambda each: each.direction == "H2D" and each.pinned is not False and each.recurs is not False,
        ("offload less: keep on the device what fits", "prefetch further ahead on a stream of its own", "copy fewer bytes"),
    ),
    (
        "device_to_host", "h2d", "Copies to the host that nothing computes beside", "Results, or states that are offloaded.",
        lambda each: each.direction == "D2H" and each.recurs is not False,
        ("copy less often, or fewer bytes", "copy into pinned memory with non_blocking=True, and go on computing"),
    ),
    (
        "within_device", "slow_operator", "Copies within the device", "Clones, concatenations and tensors that are made contiguous.",
        lambda each: each.direction == "D2D",
        ("write results where they are needed, rather than copying them there", "one flat buffer instead of many small copies"),
    ),
    (
        "between_devices", "communication", "Copies between devices that nothing computes beside", "Peer to peer.",
        lambda each: each.direction == "P2P", ("overlap them with computing", "keep tensors where they are used"),
    ),
)  # fmt: skip


def _copied(copies: Sequence[CopyStat]) -> list[Evidence]:
    figures = [Evidence("exposed copies", round(sum(each.exposed_us for each in copies) / US_PER_MS, 3), "ms")]
    figures.append(Evidence("hidden behind computing", round(sum(each.hidden_us for each in copies) / US_PER_MS, 3), "ms"))
    figures.append(Evidence("copies", sum(each.count for each in copies)))
    known = [each.bytes_total for each in copies]
    if all(known):
        figures.append(Evidence("copied", round(sum(each or 0 for each in known) / 1e6, 3), "MB"))
    return figures


def _late_rank(case: _Case) -> Iterator[OptimizationCandidate]:
    alignment = case.summary.alignment
    if not alignment or alignment.waiting_us <= 0:
        return
    whole = alignment.waiting_us + alignment.transfer_us
    waiting = alignment.waiting_us / whole
    idle = case.summary.idle
    inside = idle.waiting_us if idle and idle.waiting_us is not None else alignment.waiting_us  # warm-up's does not count
    part = case.part(inside)
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
    if not overlap or not case.window_us:
        return
    waiting = summary.idle.waiting_us if summary.idle and summary.idle.waiting_us is not None else None
    held = overlap.blocking_us if overlap.blocking_us is not None else overlap.exposed_us
    each_step, mean_us = _collectives_each_step(summary)
    many = each_step >= case.limits.many_collectives and mean_us < case.limits.small_collective_us
    part = case.part(max((overlap.exposed_us if many else held) - (waiting or 0.0), 0.0))
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
    if many:
        figures += [Evidence("collectives a step", round(each_step, 1)), Evidence("mean collective", round(mean_us, 1), "µs")]
        yield _candidate(
            "small_collectives", "Many small collectives", "Each of them waits for all ranks and moves little; nothing computes beside.",
            "communication", ("ddp_bucket_cap",) if "DistributedDataParallel" in case.names() else (), part,
            ["larger buckets: bucket_cap_mb of DistributedDataParallel, or one flat buffer", "reduce once for all micro-batches (no_sync)"],
            figures,
        )  # fmt: skip
        return
    yield _candidate(
        "exposed_communication", "Communication that nothing computes beside", "Computing stands still while collectives run.",
        "communication", (), part,
        ["overlap it (bucket sizes, prefetch of shards), send fewer bytes, or synchronize less often"], figures,
    )  # fmt: skip


def _collectives_each_step(summary: ProfileSummary) -> tuple[float, float]:
    """(collectives of one rank in one steady step, mean microseconds of one); 0 where steps are not known."""
    steps = summary.step_time.steady_state_steps.count * max(len(summary.ranks), 1)
    count = sum(each.count for each in summary.communication_ops)
    total = sum(each.total_duration for each in summary.communication_ops)
    return (count / steps if steps else 0.0), (total / count if count else 0.0)


def _untraced(case: _Case) -> Iterator[OptimizationCandidate]:
    cause = case.cause("no_work")
    if not cause:
        return
    stacks = bool(case.summary.source_sites) or bool(re.search(r"\.py\(\d+\)", case.names()))
    yield _candidate(
        "untraced_host", "The device waits for code that the trace does not show",
        "For a millisecond or more at a time no operator and no call was recorded on the threads that drive the device.", "host_code", (),
        case.part(cause.total_us),
        ["look at what other threads and processes did: these slept"] if stacks
        else [case.advice("stacks")],
        _idle_figures(case, cause),
    )  # fmt: skip


def _host_code(case: _Case) -> Iterator[OptimizationCandidate]:
    cause = case.cause("host_code")
    if not cause:
        return
    doing, sites = case.host_was_in("host_code"), case.summary.source_sites
    figures = _idle_figures(case, cause) + ([Evidence("mostly in", doing)] if doing else [])
    figures += (
        [Evidence("costliest function of the program", f"{sites[0].function} ({sites[0].file}:{sites[0].line})")]
        if sites and sites[0].function != "<module>"
        else []
    )
    yield _candidate(
        "host_code", "The device waits for work on the host that launches nothing",
        "For a millisecond or more at a time the threads that drive the device ran operators or Python on the host, and called nothing.",
        "host_code", (),
        case.part(cause.total_us),
        ["do it before, in worker processes, or on the device", "remember what does not change"], figures,
    )  # fmt: skip


def _optimizer(case: _Case) -> Iterator[OptimizationCandidate]:
    region = next((each for each in case.summary.hierarchical_regions if "Optimizer.step" in each.path.rsplit("/", 1)[-1]), None)
    steps, host = case.summary.step_time, region.host_inclusive_us if region else None
    if not host:
        return
    on_device = case.summary.idle is not None
    if on_device:  # what the host does while the device works costs nothing
        breakdown = case.summary.time_breakdown
        idle = max(breakdown.host.total_duration + breakdown.stall.total_duration - case.startup_us, 0.0)
        host = min(host, idle + (region.inclusive_duration if region and region.basis == "device" else 0.0))
    part = case.part(host)
    if part < case.limits.optimizer:
        return
    count = sum(1 for step in steps.steps if not step.warmup)
    yield _candidate(
        "optimizer", "The optimizer's step takes long",
        "It launches many small kernels, one after another." if on_device else "It calls many small operators, one after another.",
        "optimizer", _optimizer_knobs(case, region.path if region else ""), part,
        ["use the fused or the foreach implementation"],
        [Evidence("in Optimizer.step", round(host / US_PER_MS, 3), "ms"), Evidence("steps", count)],
    )  # fmt: skip


def _optimizer_knobs(case: _Case, path: str) -> tuple[str, ...]:
    """Those that the optimizer's class takes and that are not at work already: its kernels tell."""
    found = re.search(r"Optimizer\.step#(\w+)\.step$", path)
    kernels = "\n".join(op.name for op in case.summary.hot_ops)
    if not found or re.search(r"fused_?(?:adam|sgd|adagrad)", kernels, re.IGNORECASE):
        return ()
    fused = ("optimizer_fused",) if found[1] in _FUSED else ()
    return fused + (("optimizer_foreach",) if found[1] in _FUSED | _FOREACH and "multi_tensor_apply" not in kernels else ())


_LAYOUTS = {
    True: "keep one memory format (channels_last for convolutions)",
    False: "keep axes in the order that the next operation reads: fewer transposes that are made contiguous",
}


def _layout(case: _Case) -> Iterator[OptimizationCandidate]:
    part = case.of_device(case.family_us("layout")) if case.summary.devices else 0.0
    if part < case.limits.layout:
        return
    example = next(each.example_op for each in case.summary.semantic_families if each.family == "layout")
    yield _candidate(
        "layout", "Tensors change their layout", "Kernels that only rearrange memory take a part of the device's time.", "memory_format",
        (), part, [_LAYOUTS[case.family_us("convolution") > 0]], [Evidence("such as", example or "")],
    )  # fmt: skip


def _attention(case: _Case) -> Iterator[OptimizationCandidate]:
    ops = case.summary.hot_ops if case.summary.devices else ()
    batched = [op for op in ops if op.launched_by in {"aten::bmm", "aten::baddbmm"}]
    softmax = case.of_device(case.family_us("softmax"))
    fused = case.of_device(case.family_us("attention"))
    if not batched or softmax < case.limits.listed * case.limits.attention_softmax or fused > softmax:
        return
    taken = sum(op.exclusive_duration for op in batched)
    part = softmax + case.of_device(taken)
    if part < case.limits.listed:
        return
    least, known = products.least_us(batched, case.card)
    yield _candidate(
        "attention", "Attention is written out", "Softmax kernels beside batched products, and no fused attention kernel.",
        "attention_kernel", (), part, ["scaled_dot_product_attention"],
        [Evidence("softmax", round(softmax, 6), "share"), Evidence("batched products", round(part - softmax, 6), "share")],
        saved=part - case.of_device(min(least, taken)) if known else None,
    )  # fmt: skip


def _single_precision(case: _Case) -> Iterator[OptimizationCandidate]:
    slow = [op for op in case.summary.hot_ops if products.single_precision(op)] if case.summary.devices else []
    taken = sum(op.exclusive_duration for op in slow)
    part = case.of_device(taken)
    formats = products.faster_formats(case.card)
    if part < case.limits.listed or not formats:
        return
    least, known = products.least_us(slow, case.card)
    known = known if known >= case.limits.listed * taken else 0.0
    figures = [Evidence("such as", slow[0].name), Evidence("products in 32-bit floats", round(part, 6), "share")]
    if known:
        figures.append(
            Evidence("at the card's fastest 16-bit or TF32 rate they take at least", round(min(least, taken) / US_PER_MS, 3), "ms")
        )
        figures += [Evidence("of their time this is known of", round(known / taken, 6), "share")] if known < taken else []
    else:
        figures.append(
            Evidence("least time of these products", f"unknown: {'no shapes in the trace' if case.card else 'card not in the registry'}")
        )
    yield _candidate(
        "precision", "Products in 32-bit floats", "Kernels of these names multiply in full precision.", "precision", (), part,
        formats, figures, saved=part - case.of_device(min(least, taken)) if known else None,
    )  # fmt: skip


def _moving(case: _Case) -> Iterator[OptimizationCandidate]:
    """Kernels that no unit for products could speed up: their bytes are what they cost, and fusing them moves fewer."""
    if not case.summary.devices:
        return
    names = _MOVING if next(_attention(case), None) is None else _MOVING - {"softmax"}
    part = case.of_device(sum(case.family_us(name) for name in names))
    ops = [op for op in case.summary.hot_ops if op.family in names]
    if part < case.limits.moving or not ops:
        return
    taken = sum(op.exclusive_duration for op in ops)
    fused = sum(op.exclusive_duration for op in ops if op.name.startswith("triton_") or op.family == "fused")
    figures = [Evidence("such as", ops[0].canonical_name), Evidence("kernels that move rather than multiply", round(part, 6), "share")]
    known = [op for op in ops if op.calls_with_bytes]
    least = sum(case.card.moving_us(op.bytes_proxy_per_call or 0.0) * op.calls_with_bytes for op in known) if case.card else 0.0
    if least:
        measured = sum(op.exclusive_duration * op.calls_with_bytes / op.count for op in known)
        figures.append(Evidence("at the card's bandwidth their tensors take at least", round(least / US_PER_MS, 3), "ms"))
        figures.append(Evidence("of the measured", round(measured / US_PER_MS, 3), "ms"))
    again = "they are fused already: fewer bytes in 16-bit floats, or what is kept rather than computed again"
    yield _candidate(
        "memory_bound", "Kernels that move memory rather than multiply",
        "Each of them reads its tensors and writes them again, for a few operations an element.", "slow_operator", (), part,
        [again if fused > case.limits.within * taken else case.advice("fuse_kernels")], figures,
    )  # fmt: skip


def _computing(case: _Case) -> Iterator[OptimizationCandidate]:
    """The device is hardly ever idle: what is left are the kernels themselves."""
    if not case.summary.devices or case.computing < case.limits.busy:
        return
    families = [each for each in case.summary.semantic_families if each.family not in ("copy", "communication")][:3]
    figures = [Evidence(f"{each.family} kernels", each.share_of_total, "share") for each in families]
    figures += [Evidence("costliest op", case.summary.hot_ops[0].canonical_name)] if case.summary.hot_ops else []
    yield _candidate(
        "compute", "The device computes", "Hardly any time is lost around its kernels.", "compute", (), case.computing,
        ["look at the costliest operations themselves: their format, their shapes, fused forms of them"], figures, bounded=False,
    )  # fmt: skip


def _healthy(case: _Case) -> Iterator[OptimizationCandidate]:
    summary = case.summary
    if summary.devices and case.computing > case.limits.mostly:
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
    elif not summary.devices and summary.host_ops and (summary.host_ops[0].share_of_total or 0.0) >= case.limits.function:
        first = summary.host_ops[0]
        exchanges = words.is_collective_call(first.name)
        tries = "send fewer bytes, or less often; between devices their own library is faster (backend nccl)"
        yield _candidate(
            "costliest_operator", f"{first.name} takes the most of the operators' time on the host",
            "No device work is recorded: the trace tells where operators of the host take their time.",
            "communication" if exchanges else "compute", (), None,
            [tries if exchanges else "trainflash diagnose holds operators against what this machine needs for them at least"],
            [Evidence("of the operators' time", first.share_of_total or 0.0, "share"), Evidence("calls", first.count)],
        )  # fmt: skip


RULES = (
    _loading,
    _launching,
    _queued,
    _synchronising,
    _pageable,
    _copies,
    _late_rank,
    _communication,
    _untraced,
    _host_code,
    _optimizer,
    _layout,
    _attention,
    _single_precision,
    _moving,
    _computing,
)


def _idle_figures(case: _Case, cause: IdleCause) -> list[Evidence]:
    figures = [
        Evidence("idle", round(cause.total_us / US_PER_MS, 3), "ms"),
        Evidence("of the window", round(case.part(cause.total_us), 6), "share"),
    ]
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
    *,
    saved: float | None = None,
    bounded: bool = True,
) -> OptimizationCandidate:
    """`saved`: what of `part` can go at most, where it is known; else all of it. `bounded` False: no part of it goes."""
    most = part if saved is None else saved
    return OptimizationCandidate(
        candidate_id=candidate_id,
        title=title,
        rationale=rationale,
        evidence=tuple(_words(figure) for figure in figures),
        suggestions=tuple(suggestions),
        finding=finding,
        knobs=knobs,
        share=None if part is None else round(part, 6),
        ceiling_speedup=round(1 / (1 - most), 4) if bounded and most is not None and 0 < most < 0.99 else None,
        figures=tuple(replace(figure, value=float(figure.value)) if isinstance(figure.value, int) else figure for figure in figures),
    )


def _words(figure: Evidence) -> str:
    if figure.unit == "share" and not isinstance(figure.value, str):
        return f"{figure.name}: {figure.value * 100:.1f} %"
    return f"{figure.name}: {figure.value} {figure.unit}".rstrip()
