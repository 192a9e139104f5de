"""What this machine can do at most, with the threads that the program uses: bytes and floating-point operations a second.

Measured at the very end of a diagnosed process, behind its last event, with sums and products of ones: no random number is drawn. Not
where TRAINFLASH_PEAKS names that number of threads: it is known already then.
"""

from __future__ import annotations

import os
import sys
import time

from .. import process
from ..environment import capture
from ..guard import swallow
from ..phases.loop import loop
from ..writer import fact

SIZES = (("cache", 1 << 18), ("memory", 1 << 26))  # bytes of one array: fits into a second-level cache; larger than any cache
SIDES = (("float32", 768), ("float64", 512), ("bfloat16", 256))  # of square matrices: 0.9, 0.3, 0.03 GFLOP for one product
EACH_S = 0.08
LEAST = 3  # times


def tell() -> None:
    """Measure and write, once, in a process that has trained."""
    if capture != "diagnose" or not loop.steps or (process.rank() or 0) > 0:
        return
    try:
        torch = sys.modules["torch"]
        threads = torch.get_num_threads()
        if str(threads) in os.environ.get("TRAINFLASH_PEAKS", "").split(","):
            return
        with torch.no_grad(), loop.unseen():
            found = {"threads": threads, "bytes_per_s": _bandwidths(torch), "flops_per_s": _products(torch)}
        fact("peaks", **found)
    except Exception as error:
        swallow("peaks", error)


def _bandwidths(torch) -> dict:
    found = {}
    for name, size in SIZES:
        source, target = torch.ones(size // 4), torch.zeros(size // 4)
        found[name] = 2 * size / _least_s(target.copy_, source)
    return found


def _products(torch) -> dict:
    found = {}
    for name, side in SIDES:
        matrix = torch.ones(side, side, dtype=getattr(torch, name))
        found[name] = 2 * side**3 / _least_s(torch.mm, matrix, matrix)
    return found


def _least_s(work, *given) -> float:
    """Seconds of the shortest of several turns: other programs can but make them longer."""
    until = time.perf_counter() + EACH_S
    least, times = float("inf"), 0
    while times < LEAST or time.perf_counter() < until:
        began = time.perf_counter()
        work(*given)
        least, times = min(least, time.perf_counter() - began), times + 1
    return max(least, 1e-9)
