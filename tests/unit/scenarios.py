"""Summaries for rule tests, named by what the program does. Every one is healthy but for what its factory adds."""

from __future__ import annotations

from dataclasses import replace

from trainflash.schema import (
    Activity,
    LineCost,
    LoaderFacts,
    Location,
    PhaseStat,
    RepeatedWork,
    Setting,
    Spread,
    Summary,
    Threads,
)

STEP_MS = 10.0
STEPS = 400
COMPUTE = {"Fwd": 0.4, "Bwd": 0.5, "Opt": 0.1}
GETITEM = Location("data.py", 12, "__getitem__")
LOADER = Location("train.py", 40, "main")


def spread(mean_ms: float, n: int = STEPS) -> Spread:
    return Spread(n=n, mean_ms=mean_ms, p50_ms=mean_ms, p95_ms=mean_ms, p99_ms=mean_ms, max_ms=mean_ms)


def phase(share: float, *, p50_of_mean: float = 1.0, p95_of_mean: float = 1.0) -> PhaseStat:
    mean = share * STEP_MS
    return PhaseStat(share, mean, p50_of_mean * mean, p95_of_mean * mean, p95_of_mean * mean, spread(mean))


def run(*, steps: int = STEPS, **costs: float) -> Summary:
    """A run whose phases have the shares `costs`; the rest is divided among forward, backward and the optimizer."""
    rest = 1.0 - sum(costs.values())
    shares = {name: rest * part for name, part in COMPUTE.items() if name not in costs}
    scale = rest / sum(shares.values()) if shares else 1.0
    shares = {name: share * scale for name, share in shares.items()} | costs
    shares.setdefault("Other", 0.0)
    return Summary(
        run="diagnose-1",
        project="/home/owner/project",
        steps=steps,
        warmup_steps=10,
        epochs=5,
        wall_s=1.0 + steps * STEP_MS / 1000,
        startup_s=1.0,
        steady_s=steps * STEP_MS / 1000,
        timeline="host",
        device="cpu",
        coverage=1.0 - shares["Other"],
        phases={name: phase(share) for name, share in shares.items()},
        step_ms=spread(STEP_MS, steps),
        ranks=1,
        processes=1,
        sampled_s=steps * STEP_MS / 1000,
        threads=Threads(
            cpus=2.0,
            torch_threads=1,
            interop_threads=1,
            omp_num_threads="1",
            cpu_seconds=4.0,
            wall_seconds=4.0,
            runqueue_share=0.0,
            set_at=None,
        ),
        loaders=(loader(),),
        steady=True,
    )


def loader(**changes) -> LoaderFacts:
    """A training loader in the training process whose fetching computes."""
    plain = LoaderFacts(
        id=0,
        role="train",
        location=LOADER,
        num_workers=0,
        batch_size=32,
        persistent_workers=False,
        pin_memory=False,
        prefetch_factor=None,
        shuffles=True,
        own_generator=False,
        iterable=False,
        dataset="Digits",
        dataset_location=Location("data.py", 10, "__getitem__"),
        dataset_len=2560,
        sample_bytes=256,
        epochs=5,
        start_ms=spread(0.1, 5),
        first_batch_ms=spread(1.0, 5),
        getitem_ms=spread(4.5),
        collate_ms=spread(0.5),
        fetch_cpu_share=0.98,
    )
    return replace(plain, **changes)


def healthy() -> Summary:
    return replace(run(Data=0.03, Other=0.02), loaders=(loader(getitem_ms=spread(0.2), collate_ms=spread(0.1)),))


def stalled() -> Summary:
    """A healthy program on a busy machine: every phase loses 1.2 ms a step to the neighbours, measured so at load 7."""
    calm = {"Data": 0.2, "Fwd": 0.8, "Bwd": 2.8, "Opt": 0.2, "Other": 0.2}
    found = run(Data=0.14, Other=0.14, Fwd=0.2, Bwd=0.4, Opt=0.12)
    phases = {name: PhaseStat((ms + 1.2) / STEP_MS, ms + 1.2, ms, 9.0, 12.0, None) for name, ms in calm.items()}
    line = LineCost("main", "Other", Location("train.py", 44, "main"), 0.13)
    return replace(found, phases=phases, lines=(line,), threads=replace(found.threads, runqueue_share=0.67))


def slow_getitem(share: float = 0.6) -> Summary:
    """The dataset computes in the training process."""
    return replace(
        run(Data=share),
        lines=(
            LineCost("main", "Data", GETITEM, share * 0.7),
            LineCost("main", "Data", Location("data.py", 13, "__getitem__"), share * 0.2),
            LineCost("main", "Data", Location("train.py", 44, "main"), share * 0.1),
        ),
    )


def slow_disk(share: float = 0.6, cpu: float | None = 0.1) -> Summary:
    return replace(slow_getitem(share), loaders=(loader(fetch_cpu_share=cpu),))


def hand_made_batches(share: float = 0.6, cpu_seconds: float | None = 4.0) -> Summary:
    """No DataLoader: `get_batch` computes, or waits where the process uses little CPU."""
    found = run(Data=share)
    line = LineCost("main", "Data", Location("train.py", 21, "get_batch"), share)
    threads = replace(found.threads, cpu_seconds=cpu_seconds)
    return replace(found, loaders=(), lines=(line,), data_function=Location("train.py", 18, "get_batch"), epochs=None, threads=threads)


def late_batches(*, usual: float = 0.02, workers: int = 2, worker_batch_ms: float = 10.0) -> Summary:
    """Data takes 40 % on average, but the median batch costs the share `usual` of a step."""
    found = run(Data=0.4)
    data = replace(found.phases["Data"], p50_ms=usual * STEP_MS, p95_ms=40.0, p99_ms=60.0)
    facts = loader(num_workers=workers, prefetch_factor=2, getitem_ms=spread(worker_batch_ms), persistent_workers=True)
    return replace(found, phases=found.phases | {"Data": data}, loaders=(facts,))


def slow_collate(part: float = 0.7, share: float = 0.5) -> Summary:
    return replace(run(Data=share), loaders=(loader(getitem_ms=spread(5 * (1 - part)), collate_ms=spread(5 * part)),))


def restarted_workers(*, start_ms: float = 300.0, passes: int = 5, persistent: bool = False) -> Summary:
    """Two workers are started `passes` times in four seconds of training."""
    found = run(Data=min(0.9, start_ms * passes / 4000 + 0.01))
    data = replace(found.phases["Data"], p50_ms=0.1)
    facts = loader(
        num_workers=2,
        persistent_workers=persistent,
        epochs=passes,
        pass_ms=spread(start_ms + 1.1, passes),
        getitem_ms=spread(1.0),
        collate_ms=spread(0.1),
    )
    return replace(found, phases=found.phases | {"Data": data}, loaders=(facts,), processes=3)


def repeated(share: float = 0.5, *, repeats: int = 90, **changes) -> RepeatedWork:
    work = RepeatedWork(
        location=Location("data.py", 30, "render"),
        qualname="render",
        role="main",
        calls=100,
        repeats=repeats,
        mean_ms=1.5,
        share=share,
        hashable=True,
        is_method=False,
        result_bytes=1024,
        distinct=10,
    )
    return replace(work, **changes)


def evaluating(share: float = 0.5, *, grad: bool = False, batch_size: int | None = 1, loaded: bool = True) -> Summary:
    activity = Activity("Eval", 8, 50.0, share * STEP_MS * 50, Location("train.py", 70, "validate"), grad, 100.0, batch_size)
    plain = run(Eval=share)
    loaders = (loader(id=1, role="eval", location=activity.location),) if loaded else ()
    return replace(plain, activities=(activity,), loaders=(*plain.loaders, *loaders))


def saving(share: float = 0.3) -> Summary:
    activity = Activity("Ckpt", 40, 10.0, share * STEP_MS * 10, Location("train.py", 55, "main"), bytes=12_000_000)
    return replace(run(Ckpt=share), activities=(activity,))


def printing(share: float = 0.3) -> Summary:
    return replace(run(Log=share), activities=(Activity("Log", 400, 1.0, share * STEP_MS, Location("train.py", 52, "main")),))


def anomaly(data: float = 0.2) -> Summary:
    """Anomaly mode is on; `data` is the share of another cost."""
    return replace(slow_getitem(data), settings=(Setting("anomaly_mode", "on", Location("trainer.py", 88, "fit")),))


def many_threads(
    threads: int | None = 8, *, cpus: float | None = 2.0, waiting: float = 0.0, uneven: float = 1.0, used: float | None = 2.0
) -> Summary:
    """`threads` compute threads that keep `used` cores busy."""
    found = run()
    cpu_seconds = None if used is None else used * found.threads.wall_seconds
    facts = replace(found.threads, torch_threads=threads, cpus=cpus, runqueue_share=waiting, omp_num_threads=None, cpu_seconds=cpu_seconds)
    spreads = {name: phase(found.phases[name].share, p95_of_mean=uneven) for name in ("Fwd", "Bwd")}
    return replace(found, threads=facts, phases=found.phases | spreads)


def busy_callback(share: float = 0.4, found: float = 1.0) -> Summary:
    """Other takes `share`, of which samples find the part `found` in the owner's lines."""
    return replace(run(Other=share), lines=(LineCost("main", "Other", Location("metrics.py", 7, "confusion"), share * found),))


def short_run(startup_s: float = 36.0) -> Summary:
    return replace(healthy(), startup_s=startup_s, wall_s=startup_s + 4.0)


def padded(part: float | None = 0.6) -> Summary:
    return replace(healthy(), padding_share=part, input_shapes=12)
