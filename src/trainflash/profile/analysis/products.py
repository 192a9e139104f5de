"""Matrix products, convolutions and fused attention of a summary: which run in 32-bit floats, and what the card needs for them at least.

The format is told by the kernel's name. The least time is the operations over the card's fastest dense rate of a format that a
training can take, of those products whose operations are known; nothing where the trace has no shapes or the card is not in the registry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainflash.schema.boards import Board, board
from trainflash.schema.profile_ops import HotOp

PRODUCTS = frozenset({"matmul", "convolution", "attention"})
TRAINING_FORMATS = ("bf16", "fp16", "tf32", "fp32")  # not fp8: it needs another program
_OTHER_FORMAT = re.compile(r"tf32|tensorop|s1688|s16816|bf16|h884|h1688|f16", re.IGNORECASE)
_SINGLE = re.compile(
    r"sgemm|scudnn|_fp32_|simt_s|ffma|f32f32_f32f32_f32|(?:dgrad|wgrad_alg\d|fft2d\w*|winograd\w*|convolve\w*)\w*<float|"
    r"fmha_cutlass[FB]_f32|gemmSN_\w+<float|^Cijk_\w+?_\w+?_(?:SB|S_B)_"
)


def single_precision(op: HotOp) -> bool:
    """Whether this kernel multiplies 32-bit floats without rounding them for the tensor cores."""
    return op.family in PRODUCTS and bool(_SINGLE.search(op.name)) and not _OTHER_FORMAT.search(op.name)


def card(names: Sequence[str | None]) -> Board | None:
    """The one card that all devices are; None where they differ, or it is not in the registry."""
    known = {name for name in names if name}
    return board(known.pop()) if len(known) == 1 else None


def least_us(ops: Sequence[HotOp], of: Board | None) -> tuple[float, float]:
    """(microseconds that these products take at least on the card, microseconds that those of known operations took); 0, 0: unknown."""
    known = [op for op in ops if op.flop_proxy_per_invocation is not None]
    if of is None or not known:
        return 0.0, 0.0
    rate = max(of.rates.get(name, 0.0) for name in TRAINING_FORMATS)
    flops = sum((op.flop_proxy_per_invocation or 0.0) * op.calls_with_flops for op in known)
    return flops / (rate * 1e12) * 1e6, sum(op.exclusive_duration * op.calls_with_flops / op.count for op in known)


def faster_formats(of: Board | None) -> list[str]:
    """What to try for products in 32-bit floats on this card."""
    if of is None:
        return [
            "automatic mixed precision, where the card has units for 16-bit floats",
            "TF32 (torch.set_float32_matmul_precision('high')), on cards that have it: NVIDIA's from Ampere on",
        ]
    half = "bfloat16" if "bf16" in of.rates else "float16"
    found = [f"automatic mixed precision in {half}"] if half == "bfloat16" or "fp16" in of.rates else []
    return (["TF32 (torch.set_float32_matmul_precision('high'))"] if "tf32" in of.rates else []) + found
