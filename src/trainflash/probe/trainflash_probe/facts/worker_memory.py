"""Memory of a data worker, read now and then while it makes batches: what it no longer shares with the process that forked it.

Reading a Python object counts a reference, which writes into its page, and the kernel copies the page for the worker: its private memory
and its page faults grow with what it reads, until it holds all of the data set.
"""

from __future__ import annotations

import resource
import time

from ..guard import swallow
from ..writer import fact

EVERY_NS = 2_000_000_000  # the kernel walks all pages for an answer: milliseconds in a large process

_next_ns = 0


def look(batches: int) -> None:
    """Write the figures, unless they were written a moment ago; `batches`: made so far by this fetcher."""
    global _next_ns
    try:
        now = time.monotonic_ns()
        if now < _next_ns:
            return
        _next_ns = now + EVERY_NS
        usage = resource.getrusage(resource.RUSAGE_SELF)
        fact(
            "worker_memory",
            t=now,
            batches=batches,
            private=private_bytes(),
            faults=usage.ru_minflt,
            system_ns=int(1e9 * usage.ru_stime),
            cpu_ns=int(1e9 * (usage.ru_stime + usage.ru_utime)),
        )
    except Exception as error:
        swallow("memory of a worker", error)


def private_bytes():
    """Bytes of pages that no other process shares; None where the kernel does not say."""
    try:
        with open("/proc/self/smaps_rollup", encoding="ascii") as rollup:
            lines = rollup.read().splitlines()
    except OSError:
        return None
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty:", "Private_Clean:")))
