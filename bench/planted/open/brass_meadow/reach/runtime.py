"""What the process may use of the node. The settings are those of the training partition."""

import os

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


def prepare(threads: int, denormals: str) -> None:
    torch.set_flush_denormal(denormals == "flush")
    if FIXED:
        torch.set_num_threads(min(threads, len(os.sched_getaffinity(0))))
    else:
        torch.set_num_threads(threads)
