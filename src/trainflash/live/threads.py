"""Which thread of a process trains."""

from __future__ import annotations

from collections.abc import Callable

from trainflash.live import places
from trainflash.live.stacks import Stack

_LEAST = 2  # own: a single stack that was read while it changed may show anything


def trains_beside(main: int, stacks: dict[int, list[Stack]], cpu: Callable[[int], float | None]) -> int | None:
    """The thread that trains, where `main` does not: an update runs in it, or a module while the main thread computes less.

    `cpu` gives the cores of a thread. Of several the busiest; None: the main thread is the one to look at.
    """
    if any(places.in_update(stack) or places.is_worker(stack) for stack in stacks.get(main, ())):
        return None
    others = {tid: cpu(tid) or 0.0 for tid in stacks if tid != main}
    found = [tid for tid in others if sum(map(places.in_update, stacks[tid])) >= _LEAST]
    if not found and not any(map(places.in_loop, stacks.get(main, ()))):
        computes = cpu(main) or 0.0
        found = [tid for tid, cores in others.items() if cores > computes and sum(map(places.in_loop, stacks[tid])) >= _LEAST]
    return max(found, key=lambda tid: others[tid], default=None)
