"""Rules about what interrupts training now and then: evaluation, checkpoint, logging, startup, host_code."""

from __future__ import annotations

from trainflash.diagnosis.claims import Claim, at, bound, claim, count, megabytes, milliseconds, percent, shown
from trainflash.diagnosis.lines import hottest
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Activity, Evidence, Location, Written


def evaluation(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Evaluation takes a large part of training's time. Abstains without the phase Eval."""
    share, activity = signals.share("Eval"), signals.activity("Eval")
    if share is None or share < limits.listed:
        return ()
    knobs: tuple[str, ...] = ()
    train = signals.loader
    rows = _periodic_evidence(share, activity, limits)
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
    busiest = signals.hottest("Eval")
    if busiest is not None:
        rows.append(Evidence("hottest line", str(busiest)))
    return (
        claim(
            "evaluation",
            "Eval",
            "host",
            share,
            limits,
            summary=f"evaluation takes {shown(share)} of the time" + _rhythm(activity),
            evidence=rows,
            location=activity.location if activity is not None else None,
            knobs=(*knobs, "eval_cadence"),
        ),
    )


def checkpoint(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Writing checkpoints holds training up. Abstains without the phase Ckpt."""
    share, activity = signals.share("Ckpt"), signals.activity("Ckpt")
    if share is None or share < limits.listed:
        return ()
    rows = _periodic_evidence(share, activity, limits)
    if activity is not None and activity.bytes is not None:
        rows.append(megabytes("size per checkpoint", activity.bytes))
        if activity.mean_ms > 0:
            rows.append(count("written at", activity.bytes / 1e3 / activity.mean_ms, "MB/s"))
    return (
        claim(
            "checkpoint",
            "Ckpt",
            "io",
            share,
            limits,
            summary=f"checkpoints take {shown(share)} of the time" + _rhythm(activity),
            evidence=rows,
            location=activity.location if activity is not None else None,
            knobs=("checkpoint_cadence",),
        ),
    )


def logging(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Logging holds training up. Abstains without the phase Log."""
    share, activity = signals.share("Log"), signals.activity("Log")
    if share is None or share < limits.listed:
        return ()
    rows = _periodic_evidence(share, activity, limits)
    waits = [sync for sync in signals.syncs if sync.phase == "Log"]
    if waits:
        rows.append(percent(f"of it reading tensors ({waits[0].calls})", min(1.0, sum(sync.share for sync in waits) / share)))
    return (
        claim(
            "logging",
            "Log",
            "host",
            share,
            limits,
            weight=signals.exposed(share),
            summary=f"logging takes {shown(share)} of the time" + _rhythm(activity),
            evidence=rows,
            location=activity.location if activity is not None else None,
            knobs=("logging_cadence",),
        ),
    )


def host_code(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The owner's own Python between the phases. Abstains without line samples, and on a GPU unless the device is known to wait for it.

    What a line spends in collections, emptied caches and reading tensors belongs to the findings of those names and is left out.
    """
    if signals.other_in_lines is None or not signals.own_lines or (signals.on_gpu and signals.host_bound is not True):
        return ()
    aids = sum(setting.share or 0.0 for setting in signals.summary.settings)  # a profiler's own calls have a finding of their own
    found = max(0.0, min(signals.other_in_lines, sum(line.share for line in signals.own_lines)) - aids)
    weight = signals.exposed(min(found, signals.other_calm))
    if weight < limits.dominant or signals.other_in_lines < limits.explained * signals.other:
        return ()
    where = hottest(signals.own_lines)
    if _writes(where, signals.summary.written):
        return (
            claim(
                "logging",
                "Other",
                "host",
                found,
                limits,
                weight=weight,
                summary=f"code that writes a file of its own takes {shown(found)} of the time, most of it at {where}",
                evidence=(percent("share of wall time", found), Evidence("hottest line", str(where))),
                location=where,
                knobs=("logging_cadence",),
            ),
        )
    return (
        claim(
            "host_code",
            "Other",
            "host",
            found,
            limits,
            weight=weight,
            summary=f"the program's own code between the phases takes {shown(found)} of the time, most of it at {where}",
            evidence=(
                percent("share of wall time", found),
                percent("time in no phase", signals.other),
                Evidence("hottest line", str(where)),
            ),
            location=where,
        ),
    )


def _writes(where: Location | None, written: tuple[Written, ...]) -> bool:
    """Whether the code at `where` keeps a log: its class opens a file for writing, or the function itself does so again and again."""
    if where is None:
        return False
    for place in written:
        same_file = place.location.file == where.file
        owner, _, _ = place.location.function.partition(".")
        if same_file and "." in place.location.function and where.function.startswith(f"{owner}."):
            return True
        if same_file and place.often and where.function.partition(".<locals>")[0] == place.location.function:
            return True
    return False


def startup(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The run is mostly start-up. Its share is of the whole wall time. Abstains for runs that were cut short."""
    share, seconds = signals.startup, signals.summary.startup_s
    if share is None or seconds is None or share < limits.startup:
        return ()
    return (
        claim(
            "startup",
            "Other",
            "host",
            share,
            limits,
            # Its share is of another whole than those of the steady part. A long start-up outweighs all of that; a short one stands behind
            # anything that dominates there.
            weight=0.0 if share < limits.startup_first else share if seconds >= limits.startup_long_s else limits.dominant,
            summary=f"{shown(share)} of this run is start-up before the first step: {seconds:.1f} s of {signals.summary.wall_s:.1f} s",
            evidence=(
                percent("share of the whole run", share),
                count("start-up", seconds, "s"),
                count("whole run", signals.summary.wall_s, "s"),
            ),
        ),
    )


def _periodic_evidence(share: float, activity: Activity | None, limits: Thresholds) -> list[Evidence]:
    rows = [percent("share of wall time", share)]
    if activity is not None:
        rows += [count("times in the whole run", activity.count), milliseconds("mean each", activity.mean_ms)]
        if activity.every_steps is not None:
            rows.append(count("every", activity.every_steps, "steps"))
    rarer = bound(share * (1 - 1 / limits.rarer)).speedup
    return [*rows, count(f"done {limits.rarer:g} times less often it would bring at most", rarer, "×")]


def _rhythm(activity: Activity | None) -> str:
    if activity is None:
        return ""
    every = f", every {activity.every_steps:.0f} steps" if activity.every_steps is not None and activity.every_steps >= 1.5 else ""
    return f": {activity.mean_ms:.1f} ms each, {activity.count} times{every}{at(activity.location)}"
