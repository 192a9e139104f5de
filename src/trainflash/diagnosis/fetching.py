"""What making batches does with its time: computes, sleeps (disk, network, other processes), or has no core on a busy machine."""

from __future__ import annotations

from trainflash.diagnosis.calm import busy_machine, calm_share
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import LoaderFacts, Summary, ThreadBeside, Threads


def cpu_share(summary: Summary, loader: LoaderFacts | None, data: float, limits: Thresholds) -> float | None:
    """CPU time ÷ (wall − time without a core) of fetching, of the thread that fetches and of others that compute for it meanwhile.

    None where it was not measured, or where so little time was on a core that nothing can be said.
    """
    own = _by_process(summary, data, limits) if loader is None else _of_loader(summary, loader, limits)
    if own is None or (loader is not None and loader.num_workers > 0):
        return own
    return min(1.0, max(own, _by_others(summary, data, limits)))


def calm_input(summary: Summary, loader: LoaderFacts | None, limits: Thresholds) -> float:
    """Share of Data to judge by: what it would be if neither it nor the rest of the step had waited for a core."""
    stat, calm = summary.phases["Data"], calm_share(summary, "Data", limits)
    if loader is None or loader.num_workers > 0 or loader.runqueue_share is None or loader.fetch_cpu_share is None:
        return calm
    if not busy_machine(summary, limits):
        return calm
    # The fetches that are asked for their CPU time are those that lose the core; the median one is not asked.
    active = stat.share * max(loader.fetch_cpu_share, 1 - loader.runqueue_share)
    whole = max(1 - (_waited(summary.threads) or 0.0), active)
    usual = sum(other.p50_ms or other.mean_ms for other in summary.phases.values())
    middle = stat.p50_ms / usual if stat.p50_ms is not None and usual > 0 else stat.share
    return min(calm, max(active / whole if whole > 0 else 0.0, middle))


def held_up(summary: Summary, loader: LoaderFacts | None, share: float, limits: Thresholds) -> float:
    """The part of Data's `share`, computed by the training thread itself, in which it waits for a thread that holds Python's lock.

    Where it stands still far more than while it computes, it waits for something else.
    """
    threads = summary.threads
    if threads is None or not lock_holders(summary, limits) or any(each.makes for each in threads.beside):
        return 0.0
    if loader is None or loader.num_workers > 0 or loader.fetch_cpu_share is None or loader.runqueue_share is None:
        return 0.0
    still = max(0.0, 1 - loader.fetch_cpu_share - loader.runqueue_share)
    return share * still if still <= limits.held_up_as_often * standing(summary) else 0.0


def standing(summary: Summary) -> float:
    """Share of the time between a forward and its update in which the training thread was stopped by nothing but other threads.

    A CPU quota stops it as well; the kernel does not count that as time without a core.
    """
    host = summary.telemetry.host if summary.telemetry is not None else None
    throttled = (host.throttled_share if host is not None else None) or 0.0
    still = (summary.threads.standing_share if summary.threads is not None else None) or 0.0
    return max(0.0, still - throttled)


def lock_holders(summary: Summary, limits: Thresholds) -> tuple[ThreadBeside, ...]:
    """Threads of the owner's that run Python beside training, busiest first.

    None where training waits for others as well: a device, other ranks, compute threads that work.
    """
    threads = summary.threads
    if (
        threads is None
        or summary.ranks > 1
        or summary.device.startswith("cuda")
        or threads.standing_share is None
        or (threads.helpers_cpu_share or 0.0) >= limits.helpers_calm
    ):
        return ()
    return tuple(each for each in threads.beside if each.location is not None and each.cpu_share >= limits.beside_cpu)


def without_core(loader: LoaderFacts | None, limits: Thresholds) -> bool:
    """Whether fetching mostly waited for a core: then which batches came late says nothing about them."""
    return loader is not None and loader.runqueue_share is not None and loader.runqueue_share >= limits.no_core


def _waited(threads: Threads | None) -> float | None:
    return threads.runqueue_share if threads is not None else None


def _of_loader(summary: Summary, loader: LoaderFacts, limits: Thresholds) -> float | None:
    if loader.fetch_cpu_share is None:
        return None
    waiting = loader.runqueue_share
    if loader.num_workers == 0:
        waiting = max(waiting or 0.0, _waited(summary.threads) or 0.0)
    waiting = waiting or 0.0  # how long workers waited for a core may not be known
    return None if waiting > limits.hardly_any_core else min(1.0, loader.fetch_cpu_share / (1 - waiting))


def _by_process(summary: Summary, data: float, limits: Thresholds) -> float | None:
    """Without a loader: of the training thread, everything but Data taken as runnable; where that was not asked, of the whole process."""
    threads = summary.threads
    if threads is None or data <= 0 or summary.processes > 1:
        return None
    waiting = threads.runqueue_share or 0.0
    if waiting > limits.hardly_any_core:
        return None
    if threads.thread_cpu_share is not None and threads.runqueue_share is not None:
        asleep = min(data, max(0.0, 1 - threads.thread_cpu_share - waiting))
        runs = threads.thread_cpu_share / max(threads.thread_cpu_share + waiting, 1e-9)
        computes = (data - asleep) * runs
        return computes / (computes + asleep) if computes + asleep > 0 else None
    if threads.cpu_seconds is None or not threads.wall_seconds:
        return None
    busy = threads.cpu_seconds / threads.wall_seconds / (1 - waiting)
    return min(1.0, max(0.0, (busy - (1 - data)) / data))


def _by_others(summary: Summary, data: float, limits: Thresholds) -> float:
    """CPU time that other threads and processes spent while Data ran, for sure: what no compute thread can have taken beside it.

    They got a core as seldom as the training thread did. 0 where it was not asked, and for several processes that train.
    """
    threads = summary.threads
    if threads is None or threads.cpu_seconds is None or not threads.wall_seconds or threads.thread_cpu_share is None:
        return 0.0
    if data <= 0 or summary.processes > 1:
        return 0.0
    beside = (threads.torch_threads or 1) - 1 + summary.device.startswith("cuda")  # backward of a device has a thread of its own
    excess = threads.cpu_seconds / threads.wall_seconds - threads.thread_cpu_share - (1 - data) * beside
    wanted = threads.thread_cpu_share + (threads.runqueue_share or 0.0)
    runs = threads.thread_cpu_share / wanted if wanted > 0 else 1.0
    return max(0.0, excess) / max(runs, 1 - limits.hardly_any_core) / data
