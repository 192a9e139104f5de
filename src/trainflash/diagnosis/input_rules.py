"""Rules about making batches: input_cpu, input_io, input_tail, collate, worker_startup, repeated_work."""

from __future__ import annotations

from dataclasses import replace

from trainflash.diagnosis.claims import Claim, at, claim, count, mean_of, megabytes, milliseconds, percent, shown
from trainflash.diagnosis.input_signals import Input, WorkerStart, started_in
from trainflash.diagnosis.lines import lines_in, running_in
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, LoaderFacts, Location, RepeatedWork

SLOW_SAMPLES = 5
WHAT = {"process": "processes or pools of them", "thread": "threads"}
BESIDE = {"Data": None, "Eval": "evaluation", "Ckpt": "checkpoint", "Log": "logging", "Other": "host_code"}  # Data: the input's own name


def input_cost(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """input_cpu, input_io, input_tail or collate: training waits for batches (T1, T4, T7, T8). Abstains without the phase Data."""
    data = signals.data
    least = limits.listed if data is None or not data.receives else limits.handing_over
    if data is None or signals.exposed(data.calm) < least or _made_by_the_network(signals, data, limits):
        return ()
    in_evaluation = made_in_evaluations(signals, limits)
    memoizable = data.name in ("input_cpu", "input_io", "collate") and bool(_memoizable(signals, limits))
    knobs = ("memoize_function",) if memoizable else ()
    anew = signals.worker_start is not None and signals.worker_start.anew  # workers would be started for each step
    if data.loader is not None and data.chosen_at is None and not anew and not _made_inside(signals, limits):
        workers = _workers(data.loader, limits)
        deeper = ("prefetch_factor",) if data.loader.num_workers > 0 else ()
        knobs += deeper + workers if data.name == "input_tail" else workers + deeper
    return (
        claim(
            data.name,
            "Data",
            "io" if data.name == "input_io" else "input",
            data.share + in_evaluation,
            limits,
            weight=signals.exposed(data.calm + in_evaluation),
            at_most=signals.exposed(data.share + in_evaluation),
            phases=("Data", "Eval") if in_evaluation else ("Data",),
            summary=_input_sentence(data) + (f"; evaluations spend {shown(in_evaluation)} more on the same" if in_evaluation else ""),
            evidence=_input_evidence(signals, data, limits),
            location=data.location,
            knobs=knobs,
        ),
    )


def _made_inside(signals: Signals, limits: Thresholds) -> bool:
    """Whether most of what batches cost is spent inside the training step."""
    inside = sum(line.share for line in lines_in(signals.summary, "Data", "main", "in_step"))
    return inside >= limits.making_part * signals.summary.phases["Data"].share


def made_in_evaluations(signals: Signals, limits: Thresholds) -> float:
    """What evaluations spend on making batches as training does, where training waits for those too: one cause, and no evaluation's.

    Waiting for workers that start is `worker_startup`.
    """
    seen, data = signals.summary.evaluation_input, signals.data
    if seen is None or data is None:
        return 0.0
    making = seen.making - (started_in_evaluations(signals, limits) if data.loader is not None and data.loader.num_workers else 0.0)
    return making if min(making, data.share) >= limits.listed else 0.0


def started_in_evaluations(signals: Signals, limits: Thresholds) -> float:
    """What evaluations spend on starting workers for their passes, where worker_startup says it."""
    start = signals.worker_start
    return start.in_evaluations if start is not None and _restarts(start, limits) else 0.0


def _restarts(start: WorkerStart, limits: Thresholds) -> bool:
    return start.share >= limits.listed and start.times >= 2


def worker_memory(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Workers copy page after page of the data set's objects for themselves (T22). Abstains without workers that were read twice.

    `share` is what training waits for batches × the workers' time in the kernel, where pages are copied.
    """
    memory, data = signals.summary.worker_memory, signals.data
    if memory is None or data is None or data.loader is None:
        return ()
    grown = memory.last_bytes - memory.first_bytes
    if grown < limits.worker_grown_mb * 1e6:
        return ()
    share = data.share * min(1.0, memory.system_share)
    return (
        claim(
            "worker_memory",
            "Data",
            "host",
            share,
            limits,
            summary=f"each of {memory.workers} data workers copies memory of the data set for itself: {grown / 1e6:.0f} MB more than first"
            + at(data.loader.dataset_location),
            evidence=(
                megabytes("private memory of a worker, first", memory.first_bytes),
                megabytes("last", memory.last_bytes),
                count("page faults per batch", memory.faults_per_batch),
                percent("workers' time in the kernel", memory.system_share),
            ),
            location=data.loader.dataset_location or data.location,
            inside=data.name,
        ),
    )


def _workers(loader: LoaderFacts, limits: Thresholds) -> tuple[str, ...]:
    """The knob that moves the making of batches out of the training process, or back; each worker would yield all of a stream."""
    if not loader.iterable:
        return ("workers_off", "dataloader_workers") if _cost_more(loader, limits) else ("dataloader_workers",)
    return ()


def _cost_more(loader: LoaderFacts, limits: Thresholds) -> bool:
    """Whether the training process would make a batch in clearly less time than it waits for its workers to hand one over."""
    return loader.made_of_waited is not None and loader.made_of_waited < limits.made_alone


def _made_by_the_network(signals: Signals, data: Input, limits: Thresholds) -> bool:
    """Whether the making is a forward of what is trained: a generator's pictures for its critic, a policy's answers to many states.

    Where other lines take a good part of it, as environments do in a rollout, batches cost more than the network.
    """
    if data.loader is not None or data.location is None:
        return False
    network = running_in(signals.summary, ("Fwd",))
    if (data.location.file, data.location.function) not in network:
        return False
    lines = lines_in(signals.summary, "Data")
    of_network = sum(line.share for line in lines if (line.location.file, line.location.function) in network)
    return of_network >= limits.made_by_network * sum(line.share for line in lines)


def tail_beside(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """input_tail as a large part of an input that is named otherwise: late batches, and the samples that make them late (T7)."""
    data, tail = signals.data, signals.summary.input_tail
    if data is None or tail is None or data.name == "input_tail" or data.loader is None or not data.loader.slow_samples:
        return ()
    collected = signals.summary.collections.share if signals.summary.collections is not None and not data.loader.num_workers else 0.0
    share = min(tail.late_share - collected, data.share)  # a sample that a full collection came in is slow for that alone
    if share < limits.listed or data.calm < limits.listed:
        return ()
    return (
        claim(
            "input_tail",
            "Data",
            "input",
            share,
            limits,
            summary=f"{tail.late} late batches, made of few slow samples, are {shown(share)} of the time",
            evidence=(percent("waiting above the median", share), count("late steps", tail.late), *_slow_samples(data)),
            location=data.location,
            knobs=("prefetch_factor",) if data.loader.num_workers > 0 else (),
            inside=data.name,
        ),
    )


def collate_beside(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """collate as a large part of an input that is named otherwise. Abstains where collating was not timed."""
    data = signals.data
    if data is None or data.collate_part is None or data.name == "collate" or data.collate_part < limits.collate_beside:
        return ()
    if data.apart or data.chosen_at is not None:
        return ()
    if data.calm * data.collate_part < limits.listed or data.loader is None or (data.receives and data.calm < limits.handing_over):
        return ()
    return (
        claim(
            "collate",
            "Data",
            "input",
            data.share * data.collate_part,
            limits,
            summary=f"joining samples into batches is {shown(data.collate_part)} of the making of a batch",
            evidence=(percent("part of making a batch", data.collate_part), *mean_of("collate per batch", data.loader.collate_ms)),
            location=signals.batches_made_at,
            knobs=_workers(data.loader, limits),
            inside=data.name,
        ),
    )


def worker_startup(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Workers are started again for each pass over the data (T5), or the program starts pools, processes or threads while it trains.

    Abstains where the start was not timed or workers persist.
    """
    return (*_loader_startup(signals, limits), *_own_startup(signals, limits))


def _loader_startup(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    start = signals.worker_start
    if start is None or not _restarts(start, limits):
        return ()
    loader = start.loader
    if start.anew:
        return (_begun_anew(start, signals, limits),)
    return (
        claim(
            "worker_startup",
            "Eval" if loader.role == "eval" else "Data",
            "input",
            start.share,
            limits,
            phases=tuple(
                name for name, share in (("Data", start.share - start.in_evaluations), ("Eval", start.in_evaluations)) if share > 0
            ),
            summary=f"{loader.num_workers} data workers are started again for each pass over the data: "
            f"{start.each_ms:.0f} ms, {start.times} times",
            evidence=(
                percent("share of wall time", start.share),
                milliseconds("start per pass", start.each_ms),
                count("passes", start.times),
                count("workers", loader.num_workers),
                Evidence("persistent_workers", "on, but the loader is built again" if loader.persistent_workers else "off"),
            ),
            location=loader.location,
            knobs=(*(() if loader.persistent_workers else ("persistent_workers",)), *_workers(loader, limits)),
        ),
    )


def _begun_anew(start: WorkerStart, signals: Signals, limits: Thresholds) -> Claim:
    """A loader that is iterated anew for each batch: one iterator, kept, is the way out."""
    steps, loader = signals.summary.steps + signals.summary.warmup_steps, start.loader
    return claim(
        "worker_startup",
        "Data",
        "input",
        start.share,
        limits,
        phases=("Data", "Other") if start.beside > 0 else ("Data",),
        summary=f"the DataLoader is iterated anew for about each step, {shown(start.share)} of the time{at(start.location)}: "
        f"beginning takes {start.each_ms:.1f} ms, {start.times} times in {steps} steps; keep one iterator",
        evidence=(
            percent("share of wall time", start.share),
            percent("of it letting go of the iterator", start.beside),
            milliseconds("beginning a pass", start.each_ms),
            count("passes", start.times),
            count("steps", steps),
            count("workers", loader.num_workers),
        ),
        location=start.location or loader.location,
        knobs=("persistent_workers",) if loader.num_workers > 0 and not loader.persistent_workers else (),
    )


def _own_startup(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    found = [(phase, each) for phase in signals.summary.phases for each in started_in(signals.summary, phase, limits)]
    claims = []
    for phase, each in found:
        if each.share < limits.listed:
            continue
        claims.append(
            claim(
                "worker_startup",
                phase,
                "input" if phase == "Data" else "host",
                each.share,
                limits,
                summary=f"{each.count} times the program starts {WHAT[each.what]} while it trains, for {shown(each.share)} of the time"
                + at(each.location),
                evidence=(
                    percent("starting and ending them, share of wall time", each.share),
                    count(f"{WHAT[each.what]} started", each.count),
                ),
                location=each.location,
                inside="evaluation" if phase == "Eval" else None,
            )
        )
    return tuple(claims)


def repeated_work(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The same pure work is done again with equal arguments. Stands beside the cost of the phase that it is done in."""
    claims = []
    for work in _repeating(signals, limits):
        phase = signals.repeated_phase[work.location]
        in_data = phase == "Data"
        making = _making(signals, work) + made_in_evaluations(signals, limits)
        share = min(work.share, making) if in_data else min(work.share, signals.share(phase) or work.share)
        if share < limits.listed or (in_data and signals.data is not None and signals.data.calm < limits.listed):
            continue
        name = signals.data.name if in_data and signals.data is not None else BESIDE.get(phase)
        claims.append(
            claim(
                "repeated_work",
                phase,
                "input" if in_data else "host",
                share,
                limits,
                summary=f"{_doer(work)} did the same work again in {work.repeats} of {work.calls} calls that could show it, "
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
                knobs=("memoize_function",) if work.during != "operators" else (),
                inside=name,
            )
        )
    return tuple(claims)


def _doer(work: RepeatedWork) -> str:
    return f"what {work.qualname} asks of torch" if work.during == "operators" else work.qualname


def _making(signals: Signals, work: RepeatedWork) -> float:
    """Share of the wall time that this work can be blamed for: Data without worker start-up, its own part of making a batch."""
    if signals.data is None:
        return 0.0
    collating = signals.data.collate_part or 0.0
    return signals.data.share * (collating if work.during == "collate" else 1 - collating)


def _repeating(signals: Signals, limits: Thresholds) -> tuple[RepeatedWork, ...]:
    """Work that repeats often enough; what a function does for training and for evaluations is one."""
    found: dict[tuple[Location, str], RepeatedWork] = {}
    for work in signals.repeated:
        if work.repeats >= max(limits.repeated_times, limits.repeated_calls * work.calls):
            key, before = (work.location, work.during), found.get((work.location, work.during))
            found[key] = work if before is None else _together(before, work)
    return tuple(found.values())


def _together(one: RepeatedWork, other: RepeatedWork) -> RepeatedWork:
    return replace(
        one,
        calls=one.calls + other.calls,
        repeats=one.repeats + other.repeats,
        share=one.share + other.share,
        distinct=one.distinct + other.distinct,
        hashable=one.hashable and other.hashable,
    )


def _memoizable(signals: Signals, limits: Thresholds) -> tuple[RepeatedWork, ...]:
    inside = signals.repeated_phase
    return tuple(work for work in _repeating(signals, limits) if inside[work.location] == "Data" and work.share >= limits.listed)


def _input_sentence(data: Input) -> str:
    where = f", most of it at {data.location}" if data.location is not None else ""
    if data.chosen_at is not None:
        return f"training waits {shown(data.share)} of the time while its own process chooses the next samples, at {data.location}"
    if data.name == "input_cpu" and data.cpu_share is None:
        return f"training waits {shown(data.share)} of the time for batches; whether they are computed or read is not known{where}"
    what = {
        "input_cpu": f"training waits {shown(data.share)} of the time for batches that are computed on the CPU{where}",
        "input_io": f"training waits {shown(data.share)} of the time for batches that wait for disk or network{where}",
        "input_tail": f"few late batches make {shown(data.late_part or 0.0)} of the wait for data, {shown(data.share)} of the time{where}",
        "collate": f"joining samples into batches holds training up for {shown(data.share)} of the time{where}",
    }
    return what[data.name]


def _input_evidence(signals: Signals, data: Input, limits: Thresholds) -> tuple[Evidence, ...]:
    stat, loader, tail = signals.summary.phases["Data"], data.loader, signals.summary.input_tail
    rows = [percent("share of wall time", data.share), milliseconds("mean per step", stat.mean_ms)]
    if data.calm < data.share - limits.tie:
        rows.append(percent("share on a quiet machine, estimated", data.calm))
    for name, value in (("median", stat.p50_ms), ("95th percentile", stat.p95_ms), ("99th percentile", stat.p99_ms)):
        if value is not None:
            rows.append(milliseconds(f"{name} per step", value))
    if data.name == "input_tail" and tail is not None:
        rows.append(count("late steps", tail.late))
    if loader is None:
        rows.append(Evidence("DataLoader", "none, batches are made in the training process"))
    else:
        rows.append(count("workers", loader.num_workers))
        cpus = signals.threads.cpus if signals.threads is not None else None
        if cpus is not None and loader.num_workers > cpus:
            rows.append(count("cores in the budget, fewer than workers", cpus))
        if _cost_more(loader, limits):
            rows.append(Evidence("workers bring", "less than they cost: training waits longer for a batch than one takes to make"))
        rows += mean_of("samples per batch", loader.getitem_ms) + mean_of("collate per batch", loader.collate_ms)
    rows.append(
        Evidence("CPU share of fetching", "not measured: it may also wait for disk or network")
        if data.cpu_share is None
        else percent("CPU share of fetching", data.cpu_share)
    )
    rows += _machine_evidence(signals, data)
    return (*rows, *_slow_samples(data))


def _machine_evidence(signals: Signals, data: Input) -> list[Evidence]:
    host = signals.summary.telemetry.host if signals.summary.telemetry is not None else None
    if host is None or data.name != "input_io":
        return []
    rates = (("read from disk", host.disk_read_mb_s), ("read calls", host.read_mb_s), ("network", host.network_mb_s))
    return [count(name, rate, "MB/s") for name, rate in rates if rate is not None]


def _slow_samples(data: Input) -> list[Evidence]:
    if data.loader is None:
        return []
    return [
        Evidence(
            f"slow sample {sample.index}",
            f"{sample.ms:.1f} ms, usually {sample.usual_ms:.1f} ms" + (f", {sample.file}" if sample.file else ""),
        )
        for sample in data.loader.slow_samples[:SLOW_SAMPLES]
    ]
