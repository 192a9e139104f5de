"""Rules about what interrupts training now and then: evaluation, checkpoint, logging, startup, host_code."""

from __future__ import annotations

from trainflash.diagnosis.claims import Claim, bound, count, milliseconds, percent, severity, shown
from trainflash.diagnosis.signals import Signals, hottest, train_loader
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Activity, Evidence, Finding


def evaluation(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Evaluation takes a large part of training's time. Abstains without the phase Eval."""
    share, activity = signals.share("Eval"), signals.activity("Eval")
    if share is None or share < limits.listed:
        return ()
    knobs: tuple[str, ...] = ()
    train = train_loader(signals.summary)
    rows = _periodic_evidence(share, activity)
    if activity is not None:
        if activity.grad_enabled:
            knobs += ("eval_no_grad",)
            rows.append(Evidence("gradients recorded", "yes"))
        if activity.batches is not None:
            rows.append(count("forward calls per evaluation", activity.batches))
        if activity.batch_size is not None:
            rows.append(count("evaluation batch size", activity.batch_size))
            small = train is None or train.batch_size is None or activity.batch_size <= train.batch_size
            if small and (activity.batches is None or activity.batches > 1):
                knobs += ("eval_batch_size",)
    busiest = hottest(signals.summary, "Eval", "main")
    if busiest is not None:
        rows.append(Evidence("hottest line", str(busiest)))
    finding = Finding(
        kind="evaluation",
        phase="Eval",
        bound_by="host",
        share=share,
        severity=severity(share, limits),
        summary=f"evaluation takes {shown(share)} of the time" + _rhythm(activity),
        evidence=tuple(rows),
        location=activity.location if activity is not None else None,
        ceiling=bound(share),
        knobs=(*knobs, "eval_cadence"),
    )
    return (Claim(finding, share),)


def checkpoint(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Writing checkpoints holds training up. Abstains without the phase Ckpt."""
    share, activity = signals.share("Ckpt"), signals.activity("Ckpt")
    if share is None or share < limits.listed:
        return ()
    rows = _periodic_evidence(share, activity)
    if activity is not None and activity.bytes is not None:
        rows.append(count("size per checkpoint", activity.bytes / 1e6, "MB"))
    finding = Finding(
        kind="checkpoint",
        phase="Ckpt",
        bound_by="io",
        share=share,
        severity=severity(share, limits),
        summary=f"checkpoints take {shown(share)} of the time" + _rhythm(activity),
        evidence=tuple(rows),
        location=activity.location if activity is not None else None,
        ceiling=bound(share),
        knobs=("checkpoint_cadence",),
    )
    return (Claim(finding, share),)


def logging(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Logging holds training up. Abstains without the phase Log."""
    share, activity = signals.share("Log"), signals.activity("Log")
    if share is None or share < limits.listed:
        return ()
    finding = Finding(
        kind="logging",
        phase="Log",
        bound_by="host",
        share=share,
        severity=severity(share, limits),
        summary=f"logging takes {shown(share)} of the time" + _rhythm(activity),
        evidence=tuple(_periodic_evidence(share, activity)),
        location=activity.location if activity is not None else None,
        ceiling=bound(share),
        knobs=("logging_cadence",),
    )
    return (Claim(finding, share),)


def host_code(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The owner's own Python between the phases. Abstains without line samples, and on a GPU, where a line may only wait for the device."""
    found = signals.other_in_lines
    if found is None or signals.on_gpu or signals.other_location is None:
        return ()
    weight = min(found, signals.other_calm)
    if weight < limits.dominant:
        return ()
    if found < limits.explained * signals.other:
        return ()
    where = signals.other_location
    finding = Finding(
        kind="host_code",
        phase="Other",
        bound_by="host",
        share=found,
        severity=severity(found, limits),
        summary=f"the program's own code between the phases takes {shown(found)} of the time, most of it at {where}",
        evidence=(
            percent("share of wall time", found),
            percent("time in no phase", signals.other),
            Evidence("hottest line", str(where)),
        ),
        location=where,
        ceiling=bound(found),
        knobs=(),
    )
    return (Claim(finding, weight),)


def startup(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The run is mostly start-up. Its share is of the whole wall time. Abstains for runs that were cut short."""
    share, seconds = signals.startup, signals.summary.startup_s
    if share is None or seconds is None or share < limits.startup:
        return ()
    finding = Finding(
        kind="startup",
        phase="Other",
        bound_by="host",
        share=share,
        severity=severity(share, limits),
        summary=f"{shown(share)} of this run is start-up before the first step: {seconds:.1f} s of {signals.summary.wall_s:.1f} s",
        evidence=(
            percent("share of the whole run", share),
            count("start-up", seconds, "s"),
            count("whole run", signals.summary.wall_s, "s"),
        ),
        location=None,
        ceiling=bound(share),
        knobs=(),
    )
    # Ranked among shares of the steady part, which it is not: behind anything that dominates there.
    return (Claim(finding, limits.dominant if share >= limits.startup_first else 0.0),)


def _periodic_evidence(share: float, activity: Activity | None) -> list[Evidence]:
    rows = [percent("share of wall time", share)]
    if activity is None:
        return rows
    rows += [count("times in the whole run", activity.count), milliseconds("mean each", activity.mean_ms)]
    if activity.every_steps is not None:
        rows.append(count("every", activity.every_steps, "steps"))
    return rows


def _rhythm(activity: Activity | None) -> str:
    if activity is None:
        return ""
    every = f", every {activity.every_steps:.0f} steps" if activity.every_steps is not None and activity.every_steps >= 1.5 else ""
    where = f" at {activity.location}" if activity.location is not None else ""
    return f": {activity.mean_ms:.1f} ms each, {activity.count} times{every}{where}"
