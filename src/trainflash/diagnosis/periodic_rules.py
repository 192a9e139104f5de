"""Rules about what interrupts training now and then: evaluation, checkpoint, logging, startup, host_code."""

from __future__ import annotations

from trainflash.diagnosis.calm import COMPUTE
from trainflash.diagnosis.claims import Claim, at, bound, claim, count, megabytes, milliseconds, percent, shown
from trainflash.diagnosis.input_rules import made_in_evaluations, started_in_evaluations
from trainflash.diagnosis.lines import hottest, lines_in, messages_for_nobody
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Activity, Evidence, LineCost, LoaderFacts, Location, Written

MODULES, LOADER = "torch/nn/modules/", "torch/utils/data/dataloader.py"
KNOBS = {"logging": ("logging_cadence",), "checkpoint": ("checkpoint_cadence",)}  # of lines between the phases


def evaluation(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Evaluation takes a large part of training's time. Abstains without the phase Eval.

    Lines in it that write files are no evaluating: pictures of a generator's progress are a log.
    """
    whole, activity = signals.share("Eval"), signals.activity("Eval")
    if whole is None or whole < limits.listed:
        return ()
    writing = _writing_inside(whole, signals, limits)
    share = whole - sum(each.finding.share for each in writing)
    share -= made_in_evaluations(signals, limits) + started_in_evaluations(signals, limits)
    if share < limits.listed:
        return writing
    knobs: tuple[str, ...] = ()
    train = signals.loader
    rows = _periodic_evidence(share, activity, signals, limits)
    if activity is not None:
        if activity.grad_enabled:
            rows.append(Evidence("gradients recorded", "yes"))
        if activity.batches is not None:
            rows.append(count("forward calls per evaluation", activity.batches))
        if activity.batch_size is not None:
            rows.append(count("evaluation batch size", activity.batch_size))
            small = train is None or train.batch_size is None or activity.batch_size <= train.batch_size
            loaded = signals.summary.busiest_loader("eval") is not None
            if small and loaded and (activity.batches is None or activity.batches > 1):
                knobs += ("eval_batch_size",)
    busiest = signals.hottest("Eval")
    if busiest is not None:
        rows.append(Evidence("hottest line", str(busiest)))
    beside = _beside_forwards(activity, signals, limits)
    least = limits.eval_dominant if beside is not None or _wasteful(activity, train, limits) else limits.eval_of_forwards
    return (
        *writing,
        claim(
            "evaluation",
            "Eval",
            "host",
            share,
            limits,
            weight=share if share >= least else min(share, 0.9 * limits.dominant),
            summary=f"evaluation takes {shown(share)} of the time"
            + _rhythm(activity)
            + (f", most of it in {beside.function}{at(beside)}" if beside is not None else ""),
            evidence=rows,
            location=beside or (activity.location if activity is not None else None) or busiest,
            knobs=(*knobs, "eval_cadence"),
        ),
    )


def _wasteful(activity: Activity | None, train: LoaderFacts | None, limits: Thresholds) -> bool:
    """Whether the forwards of an evaluation take far fewer rows at once than training's do.

    That they record gradients for nobody is no such waste: measured on five small networks, they take 8 to 23 % less without.
    """
    rows = (activity.batch_size if activity is not None else None, train.batch_size if train is not None else None)
    return rows[0] is not None and rows[1] is not None and limits.eval_rows * rows[0] <= rows[1]


def _beside_forwards(activity: Activity | None, signals: Signals, limits: Thresholds) -> Location | None:
    """The owner's hottest line that runs no network, where such lines make up most of the evaluation, as a metric of its own does.

    Lines that lead to forwards run networks, and so do functions that training runs in forward; what training runs to make batches is
    input. None where the lines that lead to forwards are unknown.
    """
    if activity is None or not activity.forwards:
        return None
    shared = [line for name in (*COMPUTE, "Data") for role in ("main", "worker") for line in lines_in(signals.summary, name, role)]
    functions = {(line.location.file, line.location.function) for line in shared}
    forwards = {(place.file, place.line) for place in activity.forwards}
    lines = lines_in(signals.summary, "Eval")
    making = [site for site in signals.summary.sites if site.phase == "Eval" and any(place.file == LOADER for place in site.path)]
    waiting = {site.location for site in making} if made_in_evaluations(signals, limits) else set()
    beside = [
        line
        for line in lines
        if line.location not in waiting
        and (line.location.file, line.location.line) not in forwards
        and (line.location.file, line.location.function) not in functions
    ]
    most = sum(line.share for line in beside) >= limits.eval_beside * max(signals.share("Eval") or 0.0, sum(line.share for line in lines))
    return hottest(beside) if most else None


def _writing_inside(whole: float, signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """What lines inside evaluations take that themselves write again and again, by what they write: lines near them may evaluate.

    A line that leads to forwards too, as one that runs a library's whole evaluation, is left out: how long it writes is not known.
    """
    activity = signals.activity("Eval")
    networks = {(place.file, place.line) for place in (activity.forwards if activity is not None else ())}
    networks |= {
        (site.location.file, site.location.line)
        for site in signals.summary.sites
        if site.phase == "Eval" and any(place.file.startswith(MODULES) for place in site.path)
    }
    kinds = {
        (place.location.file, place.location.line): "checkpoint" if place.state else "logging"
        for place in signals.summary.written
        if place.often or place.state
    }
    lines: dict[str, list[LineCost]] = {}
    for line in lines_in(signals.summary, "Eval"):
        place = line.location.file, line.location.line
        kind = kinds.get(place)
        if kind is not None and place not in networks:
            lines.setdefault(kind, []).append(line)
    claims = []
    for kind, found in lines.items():
        share, where = min(whole, sum(line.share for line in found)), hottest(found)
        if share >= limits.listed:
            claims.append(
                claim(
                    kind,
                    "Eval",
                    "io" if kind == "checkpoint" else "host",
                    share,
                    limits,
                    summary=f"code that writes {'the state of training' if kind == 'checkpoint' else 'files'} inside evaluations takes "
                    f"{shown(share)} of the time, most of it at {where}",
                    evidence=(
                        percent("share of wall time", share),
                        percent("evaluations in all", whole),
                        Evidence("hottest line", str(where)),
                    ),
                    location=where,
                    knobs=("eval_cadence",),
                )
            )
    return tuple(claims)


def checkpoint(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Writing checkpoints holds training up. Abstains without the phase Ckpt."""
    share, activity = signals.share("Ckpt"), signals.activity("Ckpt")
    if share is None or share < limits.listed:
        return ()
    rows = _periodic_evidence(share, activity, signals, limits)
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
    rows = _periodic_evidence(share, activity, signals, limits)
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


def unheard(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """logging inside forward or backward: messages that are put together and shown to nobody. Abstains without line samples."""
    lines = messages_for_nobody(signals.summary)
    share = sum(line.share for line in lines)
    if share < limits.dominant:
        return ()
    where = hottest(lines)
    return (
        claim(
            "logging",
            "Fwd",
            "host",
            share,
            limits,
            phases=COMPUTE,
            summary=f"log messages that are put together in the network and shown to nobody take {shown(share)} of the time" + at(where),
            evidence=(percent("share of wall time", share), Evidence("hottest line", str(where))),
            location=where,
        ),
    )


def host_code(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The owner's own Python between the phases. Abstains without line samples, and on a GPU unless the device is known to wait for it.

    What a line spends in collections, emptied caches and reading tensors belongs to the findings of those names and is left out. Code that
    was seen to write keeps a log, or saves a checkpoint where what it writes is the state of training.
    """
    if signals.other_in_lines is None or not signals.own_lines or (signals.on_gpu and signals.host_bound is not True):
        return ()
    aids = sum(setting.share or 0.0 for setting in signals.summary.settings)  # a profiler's own calls have a finding of their own
    whole = sum(line.share for line in signals.own_lines)
    found = max(0.0, min(signals.other_in_lines, whole) - aids)
    if found < limits.dominant or signals.other_in_lines < limits.explained * signals.other:
        return ()
    groups: dict[str, list[LineCost]] = {}
    for line in signals.own_lines:
        groups.setdefault(writes(line.location, signals, limits) or "host_code", []).append(line)
    claims = []
    calm = min(found, signals.other_calm)
    for kind, lines in groups.items():
        part = sum(line.share for line in lines) / whole
        weight = signals.exposed(part * (calm if kind == "host_code" else found))  # writing is rare: usual steps do not show it
        if weight >= limits.listed and (kind != "host_code" or signals.exposed(calm) >= limits.dominant):
            claims.append(_between_the_phases(kind, found * part, weight, hottest(lines), signals, limits))
    return tuple(claims)


def _between_the_phases(kind: str, share: float, weight: float, where: Location | None, signals: Signals, limits: Thresholds) -> Claim:
    unheard = any(_unheard_at(where, place) for place in signals.summary.written)
    what = {
        "logging": "code that writes a file, a database or to a server takes",
        "unheard": "log messages that are put together and shown to nobody take",
        "checkpoint": "code that writes the state of training by itself takes",
        "host_code": "the program's own code between the phases takes",
    }
    return claim(
        kind,
        "Other",
        "io" if kind == "checkpoint" else "host",
        share,
        limits,
        weight=weight,
        summary=f"{what['unheard' if unheard else kind]} {shown(share)} of the time, most of it at {where}",
        evidence=(
            percent("share of wall time", share),
            percent("time in no phase", signals.other),
            Evidence("hottest line", str(where)),
        ),
        location=where,
        knobs=() if unheard else KNOBS.get(kind, ()),
    )


def writes(where: Location, signals: Signals, limits: Thresholds) -> str | None:
    """logging or checkpoint where the code at `where` is known to write.

    That is: the function itself writes again and again, or what it writes is state; or its class has opened something to write to. In a
    function that runs the training loop, only lines close to the write count. So does a log call that nobody is shown, by itself.
    """
    computing = [line.location for name in COMPUTE for line in lines_in(signals.summary, name)]
    runs = any(place.function == where.function and place.file == where.file for place in computing)
    logs = False
    for place in signals.summary.written:
        if place.location.file != where.file:
            continue
        if place.unheard:  # of its function that line alone
            logs = logs or (place.often and _unheard_at(where, place))
            continue
        owner, _, _ = place.location.function.partition(".")
        same = where.function.partition(".<locals>")[0] == place.location.function.partition(".<locals>")[0]
        near = same and (not runs or abs(where.line - place.location.line) <= limits.writes_near)
        if near and place.state:
            return "checkpoint"
        of_class = "." in place.location.function and where.function.startswith(f"{owner}.") and not runs
        logs = logs or (near and place.often) or of_class
    return "logging" if logs else None


def _unheard_at(where: Location | None, place: Written) -> bool:
    """Whether `place` is a log call on the line `where` that nobody is shown."""
    return place.unheard and where is not None and str(place.location) == str(where)


def startup(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The run is mostly start-up. Its share is of the whole wall time. Abstains for runs that were cut short."""
    share, seconds, ahead = signals.startup, signals.summary.startup_s, signals.summary.startup
    if share is None or seconds is None or share < limits.startup:
        return ()
    own_s = ahead.own_s if ahead is not None else 0.0
    lines = [LineCost("main", "", location, s / seconds) for location, s in ahead.lines] if ahead is not None else []
    where = hottest(lines) if own_s >= limits.startup_own * seconds else None
    rows = [percent("share of the whole run", share), count("start-up", seconds, "s"), count("whole run", signals.summary.wall_s, "s")]
    if ahead is not None:
        rows += [count("of it in the program's own lines", own_s, "s"), count("of it importing", ahead.importing_s, "s")]
    own_work = own_s >= limits.startup * signals.summary.wall_s
    return (
        claim(
            "startup",
            "Other",
            "host",
            share,
            limits,
            # Its share is of another whole than those of the steady part. A long start-up outweighs all of that, and so does one that is
            # mostly the program's own work; another one stands behind anything that dominates there.
            weight=share
            if own_work
            else 0.0
            if share < limits.startup_first
            else share
            if seconds >= limits.startup_long_s
            else limits.dominant,
            summary=f"{shown(share)} of this run is start-up before the first step: {seconds:.1f} s of {signals.summary.wall_s:.1f} s",
            evidence=rows,
            location=where,
        ),
    )


def _periodic_evidence(share: float, activity: Activity | None, signals: Signals, limits: Thresholds) -> list[Evidence]:
    rows = [percent("share of wall time", share)]
    if activity is not None:
        watched = "times while it was watched" if signals.summary.stopped else "times in the whole run"
        rows += [count(watched, activity.count), milliseconds("mean each", activity.mean_ms)]
        if activity.every_steps is not None:
            rows.append(count("every", activity.every_steps, "steps"))
    rarer = bound(share * (1 - 1 / limits.rarer)).speedup
    return [*rows, count(f"done {limits.rarer:g} times less often it would bring at most", rarer, "×")]


def _rhythm(activity: Activity | None) -> str:
    if activity is None:
        return ""
    every = f", every {activity.every_steps:.0f} steps" if activity.every_steps is not None and activity.every_steps >= 1.5 else ""
    return f": {activity.mean_ms:.1f} ms each, {activity.count} times{every}{at(activity.location)}"
