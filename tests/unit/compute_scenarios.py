"""Summaries for rule tests: programs whose network, optimizer or number formats cost more than they need."""

from __future__ import annotations

from dataclasses import replace

import scenarios as s

from trainflash.schema import (
    Attention,
    Compilation,
    ForwardRepeat,
    LineCost,
    Location,
    Memory,
    Numerics,
    Operators,
    PhaseStat,
    Recompute,
    Setting,
    Site,
    SiteOperator,
    Summary,
    UndoneLayout,
    Updates,
)

ATTENTION_LINE = Location("model.py", 61, "forward")
CHECKPOINT_LINE = Location("model.py", 90, "forward")
HOOK = Location("hooks.py", 14, "statistics")
COMPILED = Location("train.py", 31, "step")
OPTIMIZER_LINE = Location("train.py", 25, "main")
GPU = "cuda:NVIDIA H200"


def numerics(**changes) -> Numerics:
    """float32 on a CPU, as most small programs train."""
    plain = Numerics(
        parameter_dtype="float32",
        autocast=None,
        matmul_precision="highest",
        tf32_matmul=False,
        tf32_cudnn=True,
        capability=None,
        bf16_supported=True,
        cudnn_benchmark=False,
        deterministic=False,
        convolutions=0,
        channels_last=None,
        compiled=False,
    )
    return replace(plain, **changes)


def operators(**changes) -> Operators:
    """A census of large operators that cover nine tenths of the step."""
    plain = Operators(
        steps=2,
        per_step=120.0,
        op_ms=0.9 * s.STEP_MS,
        step_ms=s.STEP_MS,
        small_share=0.05,
        optimizer_per_step=20.0,
        conv_share=0.1,
        matmul_share=0.6,
        copy_share=0.05,
    )
    return replace(plain, **changes)


def updates(**changes) -> Updates:
    """One Adam in torch's plain loop, one backward an update."""
    plain = Updates(
        optimizer="Adam",
        location=OPTIMIZER_LINE,
        fused=None,
        foreach=None,
        tensors=24,
        elements=500_000,
        optimizers=1,
        backwards_per_step=1.0,
        micro_batch=32,
        zero_to_none=True,
        package="torch",
    )
    return replace(plain, **changes)


def memory(used: float = 0.1, **changes) -> Memory:
    """Host memory filled to the part `used` of what the control group allows."""
    return replace(Memory(host_peak_bytes=int(used * 8e9), host_limit_bytes=8_000_000_000), **changes)


def heavy_update(share: float = 0.5, **changes) -> Summary:
    return replace(s.run(Opt=share), updates=updates(**changes))


def tiny_micro_batches(
    *, backwards: float = 8.0, rows: int = 4, overhead: float = 0.7, used: float | None = 0.1, optimizers: int = 1
) -> Summary:
    """`backwards` batches of `rows` rows an update; the part `overhead` of computing lies outside large operators."""
    found = s.run()
    facts = replace(s.loader(), batch_size=rows)
    data = replace(s.phase(0.01), per_occurrence=s.spread(0.1, int(backwards * s.STEPS)))
    return replace(
        found,
        phases=found.phases | {"Data": data},
        loaders=(facts,),
        updates=updates(backwards_per_step=backwards, micro_batch=rows, optimizers=optimizers),
        operators=operators(op_ms=(1 - overhead) * s.STEP_MS, small_share=0.0),
        memory=None if used is None else memory(used),
    )


def unseen_micro_batches(*, backwards: float = 8.0, forwards: float = 8.0) -> Summary:
    """Micro-batches that a generator hands over, which nobody saw: no loader, no fetches."""
    found = tiny_micro_batches(backwards=backwards)
    computed = {name: replace(found.phases[name], per_occurrence=s.spread(1.0, int(forwards * s.STEPS))) for name in ("Fwd", "Bwd")}
    return replace(found, loaders=(), phases=found.phases | computed | {"Data": s.phase(0.01)})


def handmade_attention(share: float = 0.5, *, keys: int = 256, kind: str = "hand_written") -> Summary:
    found = Attention(kind, ATTENTION_LINE, share, 4.0, (4, 8, keys, keys), "a mask and need_weights" if kind == "math_fallback" else "")
    return replace(s.healthy(), attention=(found,))


def checkpointed_blocks(share: float = 0.25, *, used: float | None = 0.1) -> Summary:
    """Blocks are recomputed in backward while the part `used` of memory is taken."""
    return replace(s.healthy(), recompute=(Recompute(CHECKPOINT_LINE, 6.0, share),), memory=None if used is None else memory(used))


def repeated_forward(share: float = 0.4) -> Summary:
    """Modules get inputs again that they had in the same step."""
    return replace(s.healthy(), forward_repeats=(ForwardRepeat(CHECKPOINT_LINE, 3.0, share),))


def compiling(share: float = 0.4, *, steady: int = 12, by_shape: bool = False) -> Summary:
    """torch.compile compiles `steady` times while training."""
    reason = "tensor 'x' size mismatch at index 1. expected 64, actual 71" if by_shape else "self.scale == 0.5"
    found = Compilation(steady + 2, steady, share, 120.0, 0, (reason,), by_shape, False, COMPILED)
    return replace(s.healthy(), compilation=found, numerics=numerics(compiled=True), input_shapes=14 if by_shape else 1)


def debug(name: str = "profiler", value: str = "on") -> Summary:
    return replace(s.healthy(), settings=(Setting(name, value, Location("train.py", 33, "main")),))


def number_format(**changes) -> Summary:
    """A CPU program with large operators and the given number format."""
    return replace(s.healthy(), numerics=numerics(**changes), operators=operators())


def changing_layout(copies: float = 0.4) -> Summary:
    """A CNN on a CPU whose operators spend the part `copies` in copies and changes of layout."""
    return replace(s.healthy(), numerics=numerics(convolutions=8, channels_last=False), operators=operators(copy_share=copies))


def undone_layout(saving: float = 0.3, per_step: float = 9.0) -> Summary:
    """A CNN on a CPU that copies channels_last tensors into NCHW, where channels_last saves the part `saving` of its convolutions."""
    convolution = SiteOperator("conv2d", 4.0, 1.0, 2.0, 0.4, channels_last_saves=saving)
    place = Site("main", "Fwd", Location("net.py", 8, "forward"), 0.4, 0.4, 0.4, forward=0.15, backward=0.25, operators=(convolution,))
    return replace(changing_layout(0.1), sites=(place,), undone_layout=UndoneLayout(CHECKPOINT_LINE, per_step))


def tiny_operators(*, per_step: float = 2500.0, mean_us: float = 2.0, small: float = 0.9) -> Summary:
    """A cell called for each time step: operators of some microseconds, and Python between them. The step is as long as they need."""
    census = operators(per_step=per_step, op_ms=per_step * mean_us / 1000, small_share=small)
    times = max(1.0, census.op_ms / (0.9 * s.STEP_MS))
    phases = {name: _stretched(stat, times) for name, stat in s.healthy().phases.items()}
    return replace(s.healthy(), operators=replace(census, step_ms=times * census.step_ms), phases=phases, numerics=numerics())


def _stretched(stat: PhaseStat, times: float) -> PhaseStat:
    return replace(stat, mean_ms=times * stat.mean_ms, p50_ms=times * stat.p50_ms, p95_ms=times * stat.p95_ms, p99_ms=times * stat.p99_ms)


def hook_in_network(share: float = 0.5, *, phase: str = "Fwd") -> Summary:
    """A hook on a module computes in NumPy: no operator, but time inside forward."""
    found = s.run(**{phase: share + 0.2})
    line = LineCost("main", phase, HOOK, share)
    return replace(found, operators=operators(per_step=40.0, op_ms=(1 - share) * s.STEP_MS - 40 * 0.05), lines=(line,))
