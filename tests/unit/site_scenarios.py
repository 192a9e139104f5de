"""Summaries with cost sites: what a program's places cost, and how its steps change."""

from __future__ import annotations

from dataclasses import replace

import scenarios as s

from trainflash.schema import Location, Operand, Site, SiteOperator, Summary, Trend, WorkerMemory

NORM = Location("model.py", 203, "RotatE")
METRIC = Location("train.py", 29, "Module.training_step")
FEEDS = Location("train.py", 12, "batches")


def site(location: Location, share: float, **more) -> Site:
    """A site of the network."""
    plain = Site(
        role="main",
        phase="Fwd",
        location=location,
        share=share,
        run_share=share,
        function_share=share,
        forward=share,
        early_ms=share * s.STEP_MS,
        late_ms=share * s.STEP_MS,
    )
    return replace(plain, **more)


def with_sites(*sites: Site, **phases: float) -> Summary:
    return replace(s.run(**phases), sites=sites)


def calling(
    name: str,
    share: float,
    *,
    floor: float | None = None,
    shape=(2, 512, 256),
    other=None,
    layout="contiguous",
    dtype="float32",
    values="",
    **plain,
) -> Summary:
    """A step that spends `share` in one call of torch; `floor`: how many times less its bytes need, None: not known."""
    operand = Operand(tuple(shape), dtype, layout, True, values=values)
    ms = share * s.STEP_MS
    operator = SiteOperator(
        name,
        calls=1.0,
        ms=0.8 * ms,
        backward_ms=0.2 * ms,
        share=share,
        given=(operand, *([replace(operand, shape=other)] if other is not None else [])),
        made=(operand,),
        arguments=tuple((key, str(value)) for key, value in plain.items()),
        floor_ms=None if floor is None else ms / floor,
    )
    return with_sites(site(NORM, share, operators=(operator,)))


def called_back(share: float, kind: str = "metric") -> Summary:
    return with_sites(site(METRIC, share, called_back=kind), site(NORM, 0.2))


def growing(late_ms: float = 15.0, *, place: float = 1.0, cpu: bool = True, parts=(6.0, 7.0, 9.0, 11.0, 13.0, 15.0)) -> Summary:
    """Steps that grow from 6 ms; `place`: the part of that which one site takes."""
    early = 6.0
    grown = place * (late_ms - early)
    trend = Trend(
        steps=s.STEPS,
        early_ms=early,
        late_ms=late_ms,
        parts_ms=parts,
        cpu_early_ms=early if cpu else None,
        cpu_late_ms=late_ms if cpu else None,
        phase="Fwd",
        location=METRIC,
        site_early_ms=2.0,
        site_late_ms=2.0 + grown,
    )
    return replace(with_sites(site(METRIC, 0.6), site(NORM, 0.3)), trend=trend)


def copying_workers(grown_mb: float = 150.0) -> Summary:
    """Slow input whose workers' private memory grows."""
    memory = WorkerMemory(workers=2, first_bytes=20e6, last_bytes=20e6 + 1e6 * grown_mb, faults_per_batch=2500.0, system_share=0.3)
    return replace(s.slow_getitem(), loaders=(s.loader(num_workers=2),), worker_memory=memory)
