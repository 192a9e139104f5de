"""What `gate env`, `gate bench` and `gate eval` answer, as documents and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainflash.schema import GateEnv, GateEval, GateMetrics, Stall, to_plain


def env(found: GateEnv) -> dict[str, Any]:
    """The JSON document of `gate env`."""
    return {"schema": "gate_env.v1", "status": "ok", **_without_schema(found)}


def env_lines(found: GateEnv) -> str:
    """The same for a person."""
    accelerators = ", ".join(each.name for each in found.accelerators) or "none"
    rows = (
        ("machine profile", found.machine_profile),
        ("accelerators", accelerators),
        ("processor", f"{found.cpu or 'unknown'}, {_number(found.cpu_budget)} of {found.cores} cores" + _quota(found)),
        ("memory", f"{_gb(found.memory_bytes)}" + (f", limit {_gb(found.memory_limit_bytes)}" if found.memory_limit_bytes else "")),
        ("torch", f"{found.torch or 'not importable'}, {_number(found.torch_threads)} threads"),
        ("versions", ", ".join(f"{name} {value}" for name, value in _versions(found)) or "–"),
        ("commit", f"{(found.commit or 'none')[:12]}{' (with changes)' if found.dirty else ''}"),
    )
    return "\n".join(f"{name:<16} {value}" for name, value in rows)


def bench(found: GateMetrics, path: Path) -> dict[str, Any]:
    """The JSON document of `gate bench`; the single steps stand in the file."""
    return {"schema": "gate_bench.v1", "status": "ok", "metrics": str(path), **_without_schema(found, "repeats")}


def bench_lines(found: GateMetrics, path: Path) -> str:
    """The same for a person."""
    lines = [
        f"{found.machine_profile}, {found.mode}, {found.world_size} process{'es' if found.world_size > 1 else ''}",
        "step        " + ", ".join(f"{name} {_number(getattr(found, f'step_time_{name}_ms'))} ms" for name in ("p50", "p90", "mean")),
    ]
    for unit in ("tokens", "samples"):
        if getattr(found, f"{unit}_per_sec_p50") is not None:
            p50, p10 = (getattr(found, f"{unit}_per_sec_{name}") for name in ("p50", "p10"))
            lines.append(
                f"{unit:<11} p50 {_number(p50)} a second, p10 {_number(p10)}; {_number(getattr(found, f'{unit}_per_step'))} a step"
            )
    if found.memory_peak_bytes is not None:
        lines.append(f"memory      {_gb(found.memory_peak_bytes)} at most, {found.memory_of}")
    if found.loss_slope is not None:
        lines.append(f"loss        {_number(found.loss_first)} → {_number(found.loss_last)}, {found.loss_slope:+.2g} a step")
    if found.mfu_p50 is not None and found.flops is not None:
        lines.append(f"MFU         {found.mfu_p50:.1%} of {_number(found.flops.peak_tflops)} TFLOP/s, by {found.flops.estimator}")
    if found.scaling is not None and found.scaling.efficiency is not None:
        lines.append(f"scaling     {found.scaling.efficiency:.0%} on {found.scaling.world_size} processes")
    if found.stall is not None:
        lines.append(f"stall       {_stall(found.stall)}")
    if found.profile_dir:
        lines.append(f"traces      {found.profile_dir} ({', '.join(found.regions) or 'no regions'})")
    lines += [f"note        {note}" for note in found.notes]
    return "\n".join([*lines, f"written     {path}"])


def _stall(found: Stall) -> str:
    low, high = max(0.0, found.share_low), found.share_high
    if found.alert:
        return f"ALERT: {found.share:.1%} of a step [{low:.1%}, {high:.1%}] waits for data"
    if high <= found.limit:
        return f"at most {max(0.0, high):.1%} of a step waits for data"
    return f"not clear: between {low:.0%} and {high:.0%} of a step waits for data"


def evaluation(found: GateEval, path: Path) -> dict[str, Any]:
    """The JSON document of `gate eval`."""
    return {"schema": "gate_eval.v1", "status": "ok", "eval": str(path), **_without_schema(found)}


def evaluation_lines(found: GateEval, path: Path) -> str:
    """The same for a person."""
    lines = [f"model       {found.model}"]
    if found.perplexity is not None:
        lines.append(f"perplexity  {found.perplexity:g} over {found.tokens} tokens")
    lines += [f"{probe.name:<22} {probe.accuracy:g} % ({probe.correct} of {probe.total})" for probe in found.probes]
    lines += [f"{metric.text}  {metric.value:g} ({metric.better} is better)" for metric in found.metrics]
    lines += [f"note        {note}" for note in found.notes]
    return "\n".join([*lines, f"written     {path}"])


def _without_schema(found: Any, *left_out: str) -> dict[str, Any]:
    return {key: value for key, value in to_plain(found).items() if key != "schema" and key not in left_out}


def _versions(found: GateEnv) -> list[tuple[str, str]]:
    named = {
        "driver": found.driver,
        "CUDA": found.cuda,
        "ROCm": found.rocm,
        "cuDNN": found.cudnn,
        "NCCL": found.nccl,
        "Python": found.python,
    }
    return [(name, value) for name, value in {**named, **found.packages}.items() if value]


def _quota(found: GateEnv) -> str:
    return "" if found.cpu_quota is None else f", quota {found.cpu_quota:g}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _gb(value: int | None) -> str:
    return "–" if value is None else f"{value / 1e9:.2f} GB"
