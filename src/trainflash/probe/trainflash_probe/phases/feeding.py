"""What the sampler of lines has to know of where batches come from: running generators, and who makes what is waited for."""

from __future__ import annotations

import os

from .. import frames, own

DEEPEST = 64  # frames looked at
MOST_THREADS = 64
IDLE = (f"{os.sep}threading.py", f"{os.sep}queue.py")  # files whose code is innermost in a thread that waits
_POOLS = (os.path.join("concurrent", "futures", "thread.py"), os.path.join("multiprocessing", "pool.py"))

running: set = set()  # codes of generators whose items are batches and that no bracket is around
interrupt = None  # lets the sampler's signal interrupt waiting, or not: else a sample is taken when the wait is over
waiting = None  # the training thread waits for a batch: the place of the function that makes it, () where that is not known
putters: set = set()  # threads that have put something into a queue, since such a wait is known
_turn = 0


def makes(frame) -> bool:
    """Whether one of these generators has led to `frame`."""
    return bool(running) and any([frame.f_code in running for frame in _outwards(frame)])


def frame_of_maker(trainer: int):
    """The owner's frame in a thread that works on the batches that `trainer` waits for, each such thread in turn; or None."""
    global _turn
    found = []
    stacks = frames.of_threads()
    for ident, frame in stacks.items():
        if ident == trainer or frame.f_code.co_filename.endswith(IDLE):
            continue
        mine = own.own_frame(frame)
        if mine is not None and (ident in putters or any([each.f_code.co_filename.endswith(_POOLS) for each in _outwards(mine)])):
            found.append(mine)
    frame = None
    stacks.clear()  # it holds this frame too, and with it all that training holds
    _turn += 1
    return found[_turn % len(found)] if found else None


def _outwards(frame) -> list:
    found: list = []
    while frame is not None and len(found) < DEEPEST:
        found.append(frame)
        frame = frame.f_back
    return found
