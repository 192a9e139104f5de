"""How a batch is cut so that the activations of one cut stay near the core."""

import math
import os

FIXED = os.environ.get("PLANTED_FIX") == "1"
BYTES = 4
BUDGET_MIB = 512.0 if FIXED else 0.5


def cuts(batch: int, frames: int, width: int, layers: int) -> int:
    """Number of cuts; each layer keeps about eight tensors of [frame, width] for the backward pass."""
    needed = batch * frames * width * layers * 8 * BYTES / 2**20
    return min(batch, max(1, math.ceil(needed / BUDGET_MIB)))
