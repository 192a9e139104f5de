"""Rules about input shapes that keep changing, and what compiles again: recompilation, shape_instability."""

from __future__ import annotations

from trainflash.diagnosis.claims import Claim, at, claim, count, milliseconds, percent, shown
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence


def recompilation(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """torch.compile compiles again while training, or gave up (T16); beside it shape_instability where shapes are the reason."""
    compiled, shapes = signals.summary.compilation, signals.summary.input_shapes
    if compiled is None:
        return ()
    again = compiled.steady >= 1 and compiled.share >= limits.listed
    if not again:
        return ()
    rows = [
        percent("compiling, share of wall time", compiled.share),
        count("compilations while training", compiled.steady),
        count("compilations in all", compiled.frames),
    ]
    if compiled.mean_ms is not None:
        rows.append(milliseconds("mean each", compiled.mean_ms))
    if compiled.limit_hit:
        rows.append(Evidence("recompile limit", "reached: the function runs uncompiled"))
    rows += [Evidence("reason", reason) for reason in compiled.reasons]
    made = claim(
        "recompilation",
        "Fwd",
        "host",
        compiled.share,
        limits,
        phases=(),
        summary=f"torch.compile works {shown(compiled.share)} of the time, {compiled.steady} times while training{at(compiled.location)}",
        evidence=rows,
        location=compiled.location,
    )
    if not compiled.by_shape:
        return (made,)
    evidence = [percent("compiling for new shapes, share of wall time", compiled.share), count("compilations", compiled.steady)]
    if shapes is not None:
        evidence.append(count("distinct input shapes", shapes))
    unstable = claim(
        "shape_instability",
        "Fwd",
        "host",
        compiled.share,
        limits,
        phases=(),
        summary="input shapes keep changing, and each new one is compiled again",
        evidence=evidence,
        location=signals.batches_made_at,
        inside="recompilation",
    )
    return (made, unstable)


def shape_instability(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Convolutions are prepared again for each new input shape: by cuDNN's search (T10; not yet proved on a GPU), on a CPU by oneDNN.

    `share` is what forward takes above its median; on a CPU what convolutions took longer than the same ones once more, in steps looked
    at, with as much more as is measured for backward. Other changing shapes cost little by themselves.
    """
    if not signals.on_gpu:
        return _set_up_again(signals, limits)
    numerics, shapes, fwd = signals.summary.numerics, signals.summary.input_shapes, signals.summary.phases.get("Fwd")
    if numerics is None or not numerics.cudnn_benchmark or not numerics.convolutions or shapes is None:
        return ()
    if shapes < limits.shapes_many or fwd is None or fwd.p50_ms is None or fwd.mean_ms <= 0:
        return ()
    share = fwd.share * max(0.0, 1 - fwd.p50_ms / fwd.mean_ms)
    if share < limits.listed:
        return ()
    return (
        claim(
            "shape_instability",
            "Fwd",
            "device",
            share,
            limits,
            summary=f"cudnn.benchmark tries all algorithms again for each of {shapes} input shapes, about {shown(share)} of the time",
            evidence=(
                count("distinct input shapes", shapes),
                Evidence("cudnn.benchmark", "on"),
                percent("forward above its median, share of wall time", share),
            ),
            location=signals.batches_made_at,
        ),
    )


def _set_up_again(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    operators, shapes = signals.summary.operators, signals.summary.input_shapes
    fwd, work = signals.summary.phases.get("Fwd"), signals.fwd_bwd
    if operators is None or not operators.setup_ms or shapes is None or fwd is None or not fwd.mean_ms or work is None:
        return ()
    share = min(work, fwd.share * operators.setup_ms / fwd.mean_ms * limits.setup_whole)
    if shapes < limits.shapes_many or share < limits.listed:
        return ()
    return (
        claim(
            "shape_instability",
            "Fwd",
            "host",
            share,
            limits,
            phases=("Fwd", "Bwd"),
            summary=f"convolutions are set up anew for input shapes that keep changing, about {shown(share)} of the time",
            evidence=(
                count("distinct input shapes", shapes),
                count("convolutions set up in a step, forward", operators.set_up or 0.0),
                milliseconds("what the same take less once more", operators.setup_ms),
            ),
            location=signals.samples_padded_at or signals.hottest("Data"),
        ),
    )
