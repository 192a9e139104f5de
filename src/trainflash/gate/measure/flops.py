"""How many floating-point operations a training step takes, and which part of the machine's peak that is (MFU).

6ND: 6 × non-embedding parameters × tokens, forward 2 and backward 4 (Kaplan et al. 2020, arXiv 2001.08361, section 2.1). It leaves out
attention and output layers that share the embedding's weights. Transformer-aware (PaLM, Chowdhery et al. 2022, arXiv 2204.02311,
appendix B): 6 × parameters that multiply × tokens, plus three times the products of activations with each other (scores and values of
attention) as the forward made them; masked scores count in full, recomputation not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from trainflash.gate.measure.peaks import peak, why_none
from trainflash.schema import Flops

FORWARD_AND_BACKWARD = 3  # backward makes two products for each one of the forward
_TERA = 1e12


@dataclass(frozen=True)
class Work:
    """What one step of one process does. `attention` and `counted`: operations; None where they were not seen."""

    tokens: float | None = None
    parameters: int | None = None
    non_embedding: int | None = None
    multiplying: int | None = None  # parameters of matrix products: matrices outside embeddings, and embeddings that are a layer's weights
    attention: float | None = None  # of the forward
    counted: float | None = None


def estimate(
    work: Work,
    *,
    estimator: str,
    processes: int,
    step_ms: tuple[float | None, float],
    accelerator: str | None,
    dtype: str | None,
    peak_tflops: float | None,
) -> Flops:
    """The operations of a step of all `processes`, and MFU; `step_ms` is (p50, mean)."""
    per_step, reason = _per_step(work, estimator)
    total = None if per_step is None else per_step * processes
    given, source = peak_tflops, "given"
    if given is None and dtype is not None:
        found = peak(accelerator, dtype) if accelerator else None
        given, source = (found.tflops, found.source) if found else (None, None)
        reason = reason or ("" if found else why_none(accelerator, dtype))
    p50, mean = step_ms
    achieved = total / (p50 / 1e3) / _TERA if total is not None and p50 else None
    return Flops(
        estimator=estimator,
        per_step=total,
        counted_per_step=None if work.counted is None else work.counted * processes,
        parameters=work.parameters,
        non_embedding_parameters=work.non_embedding,
        achieved_tflops=achieved,
        peak_tflops=given,
        peak_source=source if given is not None else None,
        dtype=dtype,
        mfu_mean=total / (mean / 1e3) / _TERA / (processes * given) if total is not None and given and mean else None,
        reason=reason,
    )


def mfu_p50(flops: Flops, processes: int) -> float | None:
    """Achieved ÷ (processes × peak) at the p50 step."""
    if flops.achieved_tflops is None or not flops.peak_tflops:
        return None
    return flops.achieved_tflops / (processes * flops.peak_tflops)


def _per_step(work: Work, estimator: str) -> tuple[float | None, str]:
    if work.tokens is None:
        return None, "a step's tokens are not known: give them with --tokens-per-step"
    if estimator == "6ND":
        if not work.non_embedding:
            return None, "the model's parameters were not seen"
        return 6.0 * work.non_embedding * work.tokens, ""
    if not work.multiplying:
        return None, "the model's parameters were not seen"
    if work.attention is None:
        return None, "products of attention were not seen: --profile trace shows them, or estimate with 6ND"
    return 6.0 * work.multiplying * work.tokens + FORWARD_AND_BACKWARD * work.attention, ""


def matmul(left: Sequence[int], right: Sequence[int]) -> float:
    """Operations of left @ right by their shapes, a multiply and an add each; batched, with leading dimensions of either."""
    if not left or not right:
        return 0.0
    columns = right[-1] if len(right) > 1 else 1
    rows = left[-2] if len(left) > 1 else 1
    batch = max(prod(left[:-2]), prod(right[:-2]))
    return 2.0 * batch * rows * left[-1] * columns


def attention(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> float:
    """Operations of scaled dot-product attention: scores and weighted values; shapes [..., heads, positions, width]."""
    scores = 2.0 * prod(query[:-1]) * key[-2] * query[-1]
    return scores + 2.0 * prod(query[:-1]) * key[-2] * value[-1]


def of_operators(calls: Iterable[tuple[str, Sequence[Sequence[int]]]]) -> tuple[float, float]:
    """(all operations, those of products of activations in the forward) of profiled operators: (name, shapes of its inputs).

    The names are torch's own; an operator that calls another counted one (`aten::linear`, `aten::matmul`) is not counted itself.
    """
    total = forward_attention = 0.0
    for name, shapes in calls:
        if name in ("aten::mm", "aten::bmm") and len(shapes) >= 2:
            total += matmul(shapes[0], shapes[1])
        elif name in ("aten::addmm", "aten::baddbmm") and len(shapes) >= 3:
            total += matmul(shapes[1], shapes[2])
        elif name.startswith("aten::_scaled_dot_product_") and len(shapes) >= 3:
            if name.endswith("_backward"):
                total += 2.5 * attention(shapes[1], shapes[2], shapes[3])  # scores again, and four products
            elif not name.endswith("_math"):
                total += (done := attention(shapes[0], shapes[1], shapes[2]))
                forward_attention += done
    return total, forward_attention
