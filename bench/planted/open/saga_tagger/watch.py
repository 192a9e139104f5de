import os

import torch
from torch.utils._python_dispatch import TorchDispatchMode

WATCH = os.environ.get("PLANTED_FIX") != "1"


class FiniteWatch(TorchDispatchMode):
    """Raises at the first operation that gives NaN or infinity."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for value in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and not torch.isfinite(value).all():
                raise FloatingPointError(f"{func} gave a value that is not finite")
        return out
