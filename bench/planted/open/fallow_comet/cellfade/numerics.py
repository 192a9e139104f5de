"""Process-wide arithmetic settings, for the length of a run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.autograd import anomaly_mode

from cellfade.options import Numerics

FIXED = os.environ.get("PLANTED_FIX") == "1"


@contextmanager
def applied(numerics: Numerics) -> Iterator[None]:
    precision = torch.get_float32_matmul_precision()
    torch.set_flush_denormal(numerics.flush_denormal)
    torch.set_float32_matmul_precision(numerics.matmul)
    try:
        if FIXED:
            yield
        else:
            with anomaly_mode.set_detect_anomaly(numerics.trace_backward):
                yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.set_flush_denormal(False)
