"""The 30-second triage: what was seen in the window → findings, costliest first. A rule makes no claim where its signal is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from trainflash.live import places
from trainflash.live.hung import hung
from trainflash.live.sites import cost_sites
from trainflash.live.thresholds import DEFAULT, Thresholds
from trainflash.live.window import Watched, Window
from trainflash.schema import Evidence, Finding, GpuStat, Kind, Location

BoundBy = Literal["input", "io", "host", "device", "communication"]

_CAUSES = ("memory_pressure", "throttling")  # of the machine, not a share of the samples


def triage(window: Window, limits: Thresholds = DEFAULT) -> tuple[tuple[Finding, ...], str | None]:
    """Findings, and why there is none to trust (None: there is one)."""
    stands = hung(window, limits)
    if stands is not None:
        return (stands,), None
    mains = window.of("training")
    if not mains:
        return (), "no training process was seen below the PID"
    found = [finding for rule in _RULES for finding in rule(window, limits)]
    samples = sum(len(each.doing) for each in mains)
    if samples < limits.least_samples:
        kept = tuple(finding for finding in found if finding.kind in _CAUSES or not finding.location)
        few = f"only {samples} stacks were taken of the training, {limits.least_samples} are needed"
        why = few if samples else "no stacks could be taken"
        return (tuple(sorted(kept, key=lambda finding: -finding.share)), None if kept else why)
    ranked = sorted(found, key=lambda finding: -finding.share)
    if not ranked:
        ranked = list(_compute(window, limits))
    if not ranked:
        return (), f"{_largest(window, limits)}; a diagnosis from the start sees more: `trainflash diagnose -- CMD`"
    first = ranked[0]
    tied = tuple(each.kind for each in ranked[1:] if first.share - each.share < limits.tie and each.kind != first.kind)
    return (replace(first, tied_with=tied), *ranked[1:]), None


def _input(window: Window, limits: Thresholds) -> list[Finding]:
    """T1, T3, T8: waiting for batches; a pegged worker computes, idle workers read."""
    main = _slowest(window, places.WAITS_FOR_DATA, places.DATA)
    waits, makes = main.share(places.WAITS_FOR_DATA), main.share(places.DATA)
    share = waits + makes
    if share < limits.listed:
        return []
    workers = [each for each in window.of("worker") if each.parent == main.pid and not each.ended]
    evidence = [Evidence("waits_or_makes_batches", _percent(share), "%"), *_idle_gpu(window), *_disk(window, workers or [main])]
    if makes >= waits:
        computes = main.active(main.thread)
        if computes is None:
            return []
        evidence.insert(1, Evidence("main_thread_computes", _percent(computes), "%"))
        kind = "input_cpu" if computes >= limits.pegged else "input_io"
        told = "computes" if kind == "input_cpu" else "waits for a file, a network or a lock"
        where = _line(main, (places.DATA,))
        said = f"The training makes its batches itself for {_percent(share)} % of the time and {told} meanwhile."
        return [_finding(kind, "Data", "input" if kind == "input_cpu" else "io", share, limits, said, evidence, where)]
    if not workers:
        return []
    active = {each.pid: each.active(each.thread) or 0.0 for each in workers}
    busiest = max(workers, key=lambda each: active[each.pid])
    waits_at = _line(main, (places.WAITS_FOR_DATA,))  # where none of the workers' lines is the owner's
    where = _line(busiest, (places.DATA,)) or waits_at
    evidence.insert(1, Evidence("busiest_worker_computes", _percent(active[busiest.pid]), "%"))
    evidence.insert(2, Evidence("workers", len(workers), ""))
    if active[busiest.pid] >= limits.pegged:
        pegged = sum(value >= limits.pegged for value in active.values())
        said = (
            f"The training waits for batches {_percent(waits)} % of the time while workers compute ({pegged} of {len(workers)} are pegged)."
        )
        return [_finding("input_cpu", "Data", "input", share, limits, said, evidence, where)]
    if active[busiest.pid] < limits.idle and busiest.share(places.DATA) > 0:
        slow = max(workers, key=lambda each: each.share(places.DATA))
        said = (
            f"The training waits for batches {_percent(waits)} % of the time, and its workers are idle too: "
            "they wait for a file, a network or a lock."
        )
        return [_finding("input_io", "Data", "io", share, limits, said, evidence, _line(slow, (places.DATA,)) or waits_at)]
    return []


def _starting(window: Window, limits: Thresholds) -> list[Finding]:
    """T5: workers end and begin again with every pass."""
    main = _slowest(window, places.STARTING)
    share = main.share(places.STARTING)
    if share < limits.listed:
        return []
    said = f"Starting and stopping DataLoader workers takes {_percent(share)} % of the time."
    where = _line(main, (places.STARTING,))
    return [_finding("worker_startup", "Data", "input", share, limits, said, [Evidence("starting_workers", _percent(share), "%")], where)]


def _oversubscription(window: Window, limits: Thresholds) -> list[Finding]:
    """T3: many threads of one process on few cores, none of them alone pegged."""
    cpus = window.telemetry.host.cpus if window.telemetry and window.telemetry.host else None
    found = []
    for each in (*window.of("training"), *window.of("worker")):
        threads = {tid: (each.thread_cpu(tid) or 0.0, each.thread_queued(tid) or 0.0) for tid in each.after}
        busy = [(cpu, queued) for cpu, queued in threads.values() if cpu >= limits.busy_thread]
        if cpus is None or len(busy) <= limits.threads_over * cpus:
            continue
        run, queued = sum(cpu for cpu, _ in busy), sum(wait for _, wait in busy)
        share = queued / (run + queued) if run + queued else 0.0
        if share < limits.thread_wait:
            continue
        said = f"{len(busy)} threads of process {each.pid} want to run on {cpus:g} cores and wait {_percent(share)} % of that time for one."
        evidence = [
            Evidence("busy_threads", len(busy), ""),
            Evidence("cores", cpus, ""),
            Evidence("waiting_for_a_core", _percent(share), "%"),
            *_quota(window),
        ]
        found.append(_finding("thread_oversubscription", "Other", "host", share, limits, said, evidence, None))
    return sorted(found, key=lambda finding: -finding.share)[:1]


def _host_code(window: Window, limits: Thresholds) -> list[Finding]:
    """The owner's own Python outside of data, forward, backward and update."""
    main = _slowest(window, places.PYTHON)
    share, python, computes = main.share(places.PYTHON), main.python_share(), main.active(main.thread)
    if share < limits.listed or python is None or computes is None or python < limits.holds_gil * share or computes < limits.idle * share:
        return []
    where = _line(main, (places.PYTHON,))
    evidence = [
        Evidence("in_python", _percent(share), "%"),
        Evidence("main_thread_computes", _percent(computes), "%"),
        *_idle_gpu(window),
    ]
    said = f"The training computes in Python, outside of the network, for {_percent(share)} % of the time."
    return [_finding("host_code", "Other", "host", share, limits, said, evidence, where)]


def _callback(window: Window, limits: Thresholds) -> list[Finding]:
    """Hooks, metrics and trackers inside forward, backward and step."""
    inside = ("Fwd", "Bwd", "Opt")
    found = [[cost.site for cost in costs if cost.site.called_back and cost.site.phase in inside] for costs in cost_sites(window)]
    called = max(found, key=lambda sites: sum(site.share for site in sites), default=[])
    share = sum(site.share for site in called)
    if share < limits.listed:
        return []
    kinds = " and ".join(f"{kind}s" for kind in sorted({site.called_back for site in called}))
    said = f"{kinds.capitalize()} inside forward, backward or step take {_percent(share)} % of the time."
    evidence = [Evidence("called_back", _percent(share), "%")]
    return [_finding("callback", called[0].phase, "host", share, limits, said, evidence, called[0].location)]


def _activity(kind: Kind, doing: str, phase: str, said: str) -> Callable[[Window, Thresholds], list[Finding]]:
    def rule(window: Window, limits: Thresholds) -> list[Finding]:
        main = _slowest(window, doing)
        share = main.share(doing)
        if share < limits.listed:
            return []
        evidence = [Evidence(kind, _percent(share), "%")]
        return [_finding(kind, phase, "io", share, limits, said.format(_percent(share)), evidence, _line(main, (doing,)))]

    return rule


def _communication(window: Window, limits: Thresholds) -> list[Finding]:
    """Ranks that wait in collectives; a rank that never does while the others stand still is the one they wait for."""
    mains = window.of("training")
    if len(mains) < 2:
        return []
    waiting = {each.pid: each.share(places.COLLECTIVE) for each in mains}
    least, most = min(mains, key=lambda each: waiting[each.pid]), max(mains, key=lambda each: waiting[each.pid])
    share = waiting[most.pid]
    if share < limits.listed:
        return []
    evidence = [Evidence(f"{_named(each)} waits", _percent(waiting[each.pid]), "%") for each in mains[:8]]
    if share - waiting[least.pid] >= limits.high:
        where = _line(least, tuple({place.doing for place in least.doing} - {places.COLLECTIVE}))
        at = f" at {where}" if where else ""
        said = f"Others wait {_percent(share)} % of the time in collectives for {_named(least)}, which works{at}."
        return [_finding("rank_straggler", "Other", "communication", share, limits, said, evidence, where)]
    said = f"Ranks wait in collectives up to {_percent(share)} % of the time."
    return [_finding("communication", "Other", "communication", share, limits, said, evidence, _line(most, (places.COLLECTIVE,)))]


def _gpu(window: Window, limits: Thresholds) -> list[Finding]:
    """T2: a GPU that reads full but draws little power runs a trickle of tiny kernels; a slowed one is throttled."""
    found = []
    for gpu in window.telemetry.gpus if window.telemetry else ():
        power = gpu.power_w / gpu.power_limit_w if gpu.power_w is not None and gpu.power_limit_w else None
        slowed = {reason: part for reason, part in gpu.throttled.items() if part >= limits.throttled and reason != "software_power_cap"}
        if slowed:
            reason, part = max(slowed.items(), key=lambda item: item[1])
            said = f"GPU {gpu.index} is slowed down {_percent(part)} % of the time ({reason.replace('_', ' ')})."
            found.append(_finding("throttling", "Other", "device", part, limits, said, _gpu_evidence(gpu), None))
        if gpu.busy is not None and power is not None and gpu.busy >= limits.gpu_busy and power < limits.gpu_low_power:
            reads = f"GPU {gpu.index} reads {_percent(gpu.busy)} % busy at {_percent(power)} % of its power"
            said = f"{reads}: many kernels too small to fill it."
            found.append(_finding("launch_overhead", "Other", "host", 1 - power, limits, said, _gpu_evidence(gpu), None))
    return found[:1]


def _machine(window: Window, limits: Thresholds) -> list[Finding]:
    host = window.telemetry.host if window.telemetry else None
    if host is None:
        return []
    found = []
    if host.pressure_memory is not None and host.pressure_memory >= limits.memory_pressure:
        said = f"Processes stalled for memory {_percent(host.pressure_memory)} % of the time."
        evidence = [Evidence("stalled_for_memory", _percent(host.pressure_memory), "%")]
        found.append(_finding("memory_pressure", "Other", "host", host.pressure_memory, limits, said, evidence, None))
    if host.throttled_share is not None and host.throttled_share >= limits.throttled:
        said = f"The CPU quota stopped the program {_percent(host.throttled_share)} % of the time."
        found.append(_finding("throttling", "Other", "host", host.throttled_share, limits, said, _quota(window), None))
    return found


def _compute(window: Window, limits: Thresholds) -> list[Finding]:
    """Healthy: the network itself takes the time."""
    main = max(window.of("training"), key=lambda each: each.share(*places.COMPUTING, places.DEVICE))
    share = main.share(*places.COMPUTING, places.DEVICE)
    if share < 1 - 2 * limits.high or not main.doing:
        return []
    seen = [(name, main.share(name)) for name in (*places.COMPUTING, places.DEVICE)]
    evidence = [Evidence(name.replace(" ", "_"), _percent(part), "%") for name, part in seen if part]
    bound_by = "device" if window.telemetry and window.telemetry.gpus else "host"
    said = f"The network takes {_percent(share)} % of the time: nothing around it stands out."
    return [replace(_finding("compute", "Fwd", bound_by, share, limits, said, evidence, None), severity="none")]


def _largest(window: Window, limits: Thresholds) -> str:
    """The place that takes much of the time, where no rule tells why."""
    sites = [cost.site for costs in cost_sites(window) for cost in costs if cost.site.role == "main"]
    first = max(sites, key=lambda site: site.share, default=None)
    if first is None or first.share < limits.high:
        return "the samples show no cost that stands out"
    return f"{first.location} takes {_percent(first.share):.0f} % of the time, and samples alone do not tell why"


_RULES: tuple[Callable[[Window, Thresholds], list[Finding]], ...] = (
    _input,
    _starting,
    _oversubscription,
    _host_code,
    _callback,
    _activity("checkpoint", places.CHECKPOINT, "Ckpt", "Writing checkpoints takes {} % of the time."),
    _activity("logging", places.LOGGING, "Log", "Logging takes {} % of the time."),
    _communication,
    _gpu,
    _machine,
)


def _named(each: Watched) -> str:
    return f"rank {each.rank}" if each.rank is not None else f"process {each.pid}"


def _finding(
    kind: Kind,
    phase: str,
    bound_by: BoundBy,
    share: float,
    limits: Thresholds,
    summary: str,
    evidence: list[Evidence],
    where: Location | None,
) -> Finding:
    severity = "high" if share >= limits.high else "medium" if share >= 2 * limits.listed else "low"
    return Finding(kind, phase, bound_by, round(share, 4), severity, summary, tuple(evidence), where, None, ())


def _slowest(window: Window, *doing: str) -> Watched:
    """The training process that spends most of its time so."""
    return max(window.of("training"), key=lambda each: each.share(*doing))


def _line(each: Watched, doing: tuple[str, ...]) -> Location | None:
    """The owner's line seen most while the thread that trains did one of these."""
    seen = Counter(place.own for place in each.doing if place.doing in doing and place.own is not None)
    return places.location(seen.most_common(1)[0][0], each.cwd) if seen else None


def _idle_gpu(window: Window) -> list[Evidence]:
    found = []
    for gpu in window.telemetry.gpus if window.telemetry else ():
        if gpu.busy is not None:
            found.append(Evidence(f"gpu_{gpu.index}_busy", _percent(gpu.busy), "%"))
        if gpu.sawtooth:
            found.append(Evidence(f"gpu_{gpu.index}_sawtooth", "swings between idle and busy"))
    return found


def _disk(window: Window, readers: list[Watched]) -> list[Evidence]:
    host = window.telemetry.host if window.telemetry else None
    reads = [each.reads_bytes_s for each in readers if each.reads_bytes_s is not None]
    found = [Evidence("read", round(sum(reads) / 1e6, 3), "MB/s")] if reads else []
    if host is not None and host.disk_read_mb_s is not None:
        found.append(Evidence("read_from_disk", round(host.disk_read_mb_s, 3), "MB/s"))
    if host is not None and host.pressure_io is not None:
        found.append(Evidence("stalled_for_disk", _percent(host.pressure_io), "%"))
    return found


def _quota(window: Window) -> list[Evidence]:
    host = window.telemetry.host if window.telemetry else None
    if host is None or host.throttled_share is None:
        return []
    return [Evidence("stopped_by_quota", _percent(host.throttled_share), "%")]


def _gpu_evidence(gpu: GpuStat) -> list[Evidence]:
    figures = (
        ("busy", gpu.busy and 100 * gpu.busy, "%"), ("memory_busy", gpu.memory_busy and 100 * gpu.memory_busy, "%"),
        ("power", gpu.power_w, "W"), ("power_limit", gpu.power_limit_w, "W"), ("sm_clock", gpu.sm_clock_mhz, "MHz"),
        ("sm_clock_max", gpu.sm_clock_max_mhz, "MHz"), ("temperature", gpu.temperature_c, "°C"),
    )  # fmt: skip
    return [Evidence(name, round(value, 1), unit) for name, value, unit in figures if value is not None]


def _percent(share: float) -> float:
    return round(100 * share, 1)
