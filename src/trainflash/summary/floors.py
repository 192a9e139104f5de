"""The least time that a call of torch can take on this machine: its bytes over the bandwidth, its FLOPs over the peak of its type.

Both are lower bounds: each tensor is read or written once, at the bandwidth of the cache where all of them would fit into one, and
products run as fast as the fastest one measured. A backward reads what the forward read and made, and multiplies once for each operand
that needs a gradient. No floor is given where the work does not follow from shapes: sorting, drawing, loops inside an operator.
"""

from __future__ import annotations

import math

from trainflash.schema import Operand, Peaks
from trainflash.trace.calls import CallRow

CACHE_BYTES = 1 << 22  # own: what all tensors of a call together may take to fit into a second-level cache and a part of the third
_BYTES = {
    "float64": 8,
    "int64": 8,
    "complex64": 8,
    "complex128": 16,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
_PRODUCTS = frozenset({"linear", "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "mv", "dot"})
_CONVOLUTIONS = frozenset(f"conv{turned}{sides}d" for turned in ("", "_transpose") for sides in (1, 2, 3))
# Calls that read a part of a table: as many of its rows as they make.
_GATHERS = frozenset({"embedding", "index_select", "gather", "__getitem__", "take", "take_along_dim", "narrow", "select", "embedding_bag"})
_VIEWS = frozenset(
    ["view", "transpose", "permute", "unsqueeze", "squeeze", "expand", "t", "detach", "unbind", "split", "chunk", "unfold", "T"]
)
_OTHERS = """
sort argsort topk unique multinomial cumsum cumprod lstm gru rnn_tanh rnn_relu backward einsum multi_head_attention_forward
scaled_dot_product_attention fft rfft irfft stft istft svd eigh cholesky solve inv pinv qr unique_consecutive searchsorted kthvalue
dropout feature_dropout alpha_dropout rand randn rand_like randn_like randint randperm bernoulli bernoulli_ normal normal_ uniform_
exponential_ median quantile cdist pdist bincount histc nonzero ctc_loss grid_sample interpolate fold
"""
_UNKNOWN = frozenset(_OTHERS.split())


def floor_s(row: CallRow, peaks: Peaks) -> float | None:
    """Seconds that one of these calls takes at least, forward and backward; None where it does not follow."""
    if row.name in _UNKNOWN or row.name in _VIEWS or not row.given or not row.made:
        return None
    if any(each.device != "cpu" or each.layout.startswith("sparse") for each in (*row.given, *row.made)):
        return None
    read, made = sum(map(_bytes, row.given)), sum(map(_bytes, row.made))
    if row.name in _GATHERS:
        read = made + read - max(map(_bytes, row.given))
    both = read + made
    seconds = both / _bandwidth(both, peaks)
    backward = seconds if row.backward_ns > 0 else 0.0
    if backward and row.name == "embedding" and len(row.given) > 1:  # a dense gradient is as large as the table
        table = _bytes(row.given[1])
        backward = (made + table) / _bandwidth(made + table, peaks)
    flops = _flops(row)
    if flops:
        peak = peaks.flops_per_s.get(row.given[0].dtype, peaks.flops_per_s.get("float32"))
        if not peak:
            return None
        ways = sum(each.requires_grad for each in row.given[:2])
        seconds, backward = max(seconds, flops / peak), max(backward, ways * flops / peak) if row.backward_ns > 0 else 0.0
    return seconds + backward


def _bytes(operand: Operand) -> int:
    """Of its storage at least: an expanded tensor may hold a single number."""
    size = _BYTES.get(operand.dtype, 4)
    return size if operand.layout == "expanded" else size * math.prod(operand.shape)


def _bandwidth(size: int, peaks: Peaks) -> float:
    return peaks.bytes_per_s["cache" if size <= CACHE_BYTES else "memory"]


def _flops(row: CallRow) -> float:
    """Of one call's forward, two for each multiplication with its addition; 0 for what does not multiply matrices."""
    made = row.made[0].shape
    if row.name in _CONVOLUTIONS and len(row.given) > 1:
        weight = row.given[1].shape  # (out, in ÷ groups, …); transposed: (in, out ÷ groups, …)
        if "transpose" in row.name:
            return 2.0 * math.prod(row.given[0].shape) * math.prod(weight[1:])
        return 2.0 * math.prod(made) * math.prod(weight[1:])
    if row.name in _PRODUCTS:
        first = row.given[1] if row.name in ("addmm", "baddbmm") and len(row.given) > 2 else row.given[0]
        return 2.0 * math.prod(made) * (first.shape[-1] if first.shape else 1)
    return 0.0
