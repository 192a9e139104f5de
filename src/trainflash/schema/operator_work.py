"""What a call of torch moves and multiplies at least, by its name and its tensors: the same for a diagnosis and for a profiler's trace.

Each tensor is read or written once. Nothing is said where the work does not follow from shapes: sorting, drawing, loops inside an operator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from trainflash.schema.sites import Operand

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
sort argsort topk unique multinomial cumsum cumprod lstm gru rnn_tanh rnn_relu backward einsum
lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell multi_head_attention_forward
scaled_dot_product_attention fft rfft irfft stft istft svd svdvals eig eigh eigvals eigvalsh cholesky cholesky_ex cholesky_solve
cholesky_inverse solve solve_ex inv inv_ex pinv qr lu lu_factor lu_solve lstsq det logdet slogdet matrix_exp matrix_power unique_consecutive
searchsorted kthvalue bilinear tensordot inner addbmm chain_matmul multi_dot
dropout feature_dropout alpha_dropout rand randn rand_like randn_like randint randperm bernoulli bernoulli_ normal normal_ uniform_
exponential_ median quantile cdist pdist bincount histc nonzero ctc_loss grid_sample interpolate fold
"""
_UNKNOWN = frozenset(_OTHERS.split())
_FUSED = re.compile("_transformer_|_native_multi_head_|_scaled_dot_|_flash_|_efficient_|_cudnn_rnn|linalg_|_linalg_|fft_|_fft_")


def size(operand: Operand) -> int:
    """Bytes of its storage at least: an expanded tensor may hold a single number."""
    each = _BYTES.get(operand.dtype, 4)
    return each if operand.layout == "expanded" else each * math.prod(operand.shape)


def moved(name: str, given: Sequence[Operand], made: Sequence[Operand]) -> int | None:
    """Bytes that a call reads and writes at least; None where it does not follow, or where it is no more than a view."""
    if name in _UNKNOWN or name in _VIEWS or _FUSED.match(name) or not given or not made:
        return None
    written = sum(map(size, made))
    read = sum(map(size, given))
    return written + written + read - max(map(size, given)) if name in _GATHERS else written + read


def flops(name: str, given: Sequence[Operand], made: Sequence[Operand]) -> float:
    """Of one call's forward, two for each multiplication with its addition; 0 for what does not multiply matrices."""
    out = made[0].shape
    if name in _CONVOLUTIONS and len(given) > 1:
        weight = given[1].shape  # (out, in ÷ groups, …); transposed: (in, out ÷ groups, …)
        if "transpose" in name:
            return 2.0 * math.prod(given[0].shape) * math.prod(weight[1:])
        return 2.0 * math.prod(out) * math.prod(weight[1:])
    if name in _PRODUCTS:
        first = given[1] if name in ("addmm", "baddbmm") and len(given) > 2 else given[0]
        return 2.0 * math.prod(out) * (first.shape[-1] if first.shape else 1)
    return 0.0
