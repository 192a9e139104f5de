"""Hung or slow: whether nothing moves in any process, and where it is that it stands still."""

from __future__ import annotations

from collections import Counter

from trainflash.live import kernel, places
from trainflash.live.places import Place
from trainflash.live.thresholds import Thresholds
from trainflash.live.window import Watched, Window
from trainflash.schema import Evidence, Finding

_TOGETHER = (places.COLLECTIVE, places.BACKWARD)  # DDP reduces gradients inside backward


def still(each: Watched, limits: Thresholds) -> bool | None:
    """Whether the thread that trains neither moved nor computed; None for too short a look or missing counters."""
    cpu, switches = each.thread_cpu(each.thread), each.switches_s(each.thread)
    if each.seconds < limits.least_still_s or cpu is None or switches is None:
        return None
    if each.doing:
        most = Counter(_key(place) for place in each.doing).most_common(1)[0][1]
        if most < limits.still_samples * len(each.doing):
            return False
    return cpu <= limits.still_cpu and switches <= limits.still_switches


def spins(each: Watched, window: Window, limits: Thresholds) -> bool:
    """Whether that thread stands at one place that waits for a busy GPU and computes meanwhile: the driver may spin."""
    gpus = window.telemetry.gpus if window.telemetry else ()
    if len(each.doing) < limits.device_still_samples or not any((gpu.busy or 0.0) >= limits.gpu_busy for gpu in gpus):
        return False
    places_seen = Counter(_key(place) for place in each.doing)
    where, times = places_seen.most_common(1)[0]
    return times == len(each.doing) and where[0] in (places.DEVICE, *_TOGETHER)


def hung(window: Window, limits: Thresholds) -> Finding | None:
    """The finding `hung` when nothing moves in any training process and no worker makes data."""
    training = window.of("training")
    if not training or not all(still(each, limits) or spins(each, window, limits) for each in training):
        return None
    workers = [each for each in window.of("worker") if not each.ended]
    if any(moves(each, limits) for each in workers):
        return None  # slow: one batch takes longer than the window
    cause, told, bound_by = _several(training) if len(training) > 1 else _single(training[0], workers)
    place = main_place(cause)
    where = places.location(place.own, cause.cwd) if place and place.own else None
    cpu = sum(each.cpu for each in (*training, *workers))
    return Finding(
        kind="hung",
        phase=places.PHASES.get(place.doing if place else "", "Other"),
        bound_by=bound_by,
        share=1.0,
        severity="high",
        summary=f"Nothing moved for {window.seconds:.0f} s: {told}. A single step that is longer than that looks the same.",
        evidence=(
            Evidence("watched", round(window.seconds, 1), "s"),
            Evidence("cpu_of_all_processes", round(cpu, 3), "cores"),
            *(Evidence(_name(each), _stands(each)) for each in (*training, *workers)[:16]),
        ),
        location=where,
        ceiling=None,
        knobs=(),
    )


def moves(each: Watched, limits: Thresholds) -> bool:
    """Whether a worker makes data: it computes, reads, or changes its place."""
    if each.cpu > limits.busy_thread or (each.reads_bytes_s or 0.0) > 0:
        return True
    return still(each, limits) is False


def main_place(each: Watched) -> Place | None:
    """Where the thread that trains was seen most."""
    if not each.doing:
        return None
    return max(Counter(each.doing).items(), key=lambda item: item[1])[0]


def _single(main: Watched, workers: list[Watched]) -> tuple[Watched, str, str]:
    place = main_place(main)
    if place is None:
        return main, f"process {main.pid} waits for {main.waits_for[1] or 'something'}", "host"
    at = f" at {_at(main, place)}" if place.own else ""
    if place.doing == places.WAITS_FOR_DATA:
        return _worker_at_fault(main, workers, at)
    if place.doing == places.DEBUGGER:
        return main, f"it stands in a debugger{at}", "host"
    if main.reads_terminal or place.doing == places.INPUT:
        return main, f"it waits for somebody to type{at}", "host"
    if place.doing == places.COLLECTIVE:
        return main, f"it waits in `{place.call}`{at} for processes that are not here", "communication"
    kind, what = main.waits_for
    if kind == kernel.READ:
        return main, f"it reads from {what}{at} and gets nothing", "io"
    if place.doing == places.LOCK or kind == kernel.LOCK:
        others = _others(main)
        return main, f"it waits for a lock or another thread{at}{others}", "host"
    if kind == kernel.CHILD:
        return main, f"it waits for a child process{at}", "host"
    if place.doing == places.DEVICE:
        return main, f"it waits for the device{at}", "device"
    return main, f"it waits for {what or 'something'}{at}", "host"


def _worker_at_fault(main: Watched, workers: list[Watched], at: str) -> tuple[Watched, str, str]:
    """The main process waits for a batch: the worker that does not send it."""
    busy = [each for each in workers if (place := main_place(each)) is None or place.doing != places.NO_REQUEST]
    if not workers:
        return main, f"the training waits for a batch{at}, and no worker is left to make it", "input"
    if not busy:
        told = f"the training waits for a batch{at}, and all {len(workers)} workers wait for a request"
        return main, f"{told}: a batch was lost between them", "input"
    worker = busy[0]
    place = main_place(worker)
    where = f" at {_at(worker, place)}" if place and place.own else ""
    kind, what = worker.waits_for
    told = f"the training waits for a batch{at}; worker {worker.pid}"
    if kind == kernel.READ:
        return worker, f"{told} reads from {what}{where} and gets nothing", "io"
    if kind == kernel.LOCK or (place and place.doing == places.LOCK):
        forked = "; a lock that was taken when the worker was forked is never released in it" if worker.argv == main.argv else ""
        return worker, f"{told} waits for a lock{where}{forked}", "host"
    return worker, f"{told} waits for {what or 'something'}{where}", "input"


def _several(training: tuple[Watched, ...]) -> tuple[Watched, str, str]:
    """Ranks that stand still: all in the same collective, or one elsewhere."""
    standing = {each.pid: main_place(each) for each in training}
    groups: dict[tuple, list[Watched]] = {}
    for each in training:
        place = standing[each.pid]
        groups.setdefault(_key(place) if place else ("", None, ""), []).append(each)
    if len(groups) == 1:
        place = standing[training[0].pid]
        if place and place.doing in _TOGETHER:
            call = f"`{place.call}`" if place.call else "the same collective"
            told = f"all {len(training)} ranks wait in {call} at {_at(training[0], place)}: a rank or the network outside holds them"
            return training[0], told, "communication"
        told = f"all {len(training)} processes stand at {_at(training[0], place)}" if place else f"{len(training)} processes stand still"
        return training[0], told, "host"
    elsewhere = [group for key, group in groups.items() if key[0] not in _TOGETHER]
    odd = min(elsewhere or groups.values(), key=len)
    others = [each for each in training if each not in odd]
    place, common = standing[odd[0].pid], standing[others[0].pid]
    told = f"{_names(odd)} stands at {_at(odd[0], place)}{_in(place)} while {_names(others)} waits at {_at(others[0], common)}{_in(common)}"
    return odd[0], told, "communication"


def _others(main: Watched) -> str:
    """The owner's places of other threads that stand still too, such as the other half of a deadlock."""
    found = []
    for tid, stacks in main.stacks.items():
        own = next((frame for frame in stacks[-1] if places.is_own(frame)), None) if stacks and tid != main.thread else None
        if own is not None:
            found.append(f"thread {main.after[tid].name if tid in main.after else tid} at {places.location(own, main.cwd)}")
    return f" (beside it: {', '.join(found[:3])})" if found else ""


def _key(place: Place) -> tuple:
    return place.doing, (place.own.file, place.own.line) if place.own else None, place.call if place.doing == places.COLLECTIVE else ""


def _at(each: Watched, place: Place | None) -> str:
    if place is None or place.own is None:
        return "a place without lines of yours"
    found = places.location(place.own, each.cwd)
    return f"{found} in {found.function}"


def _in(place: Place | None) -> str:
    return f" (`{place.call}`)" if place and place.doing == places.COLLECTIVE and place.call else ""


def _stands(each: Watched) -> str:
    place = main_place(each)
    doing = f", {place.doing}{_in(place)}" if place else ""
    waits = f", waits for {each.waits_for[1]}" if each.waits_for[1] else ""
    return f"{_at(each, place)}{doing}{waits}"


def _name(each: Watched) -> str:
    return f"rank {each.rank} (process {each.pid})" if each.role == "training" and each.rank is not None else f"{each.role} {each.pid}"


def _names(group: list[Watched]) -> str:
    known = [str(each.rank) for each in group if each.rank is not None]
    if len(known) == len(group):
        return f"rank {known[0]}" if len(known) == 1 else f"ranks {', '.join(known)}"
    return ", ".join(f"process {each.pid}" for each in group)
