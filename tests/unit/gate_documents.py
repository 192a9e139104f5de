"""Measured documents of the gate, as a benchmark and an evaluation would write them."""

from __future__ import annotations

import json
import random
from pathlib import Path

from trainflash.schema import GateEval, GateLine, GateMetrics, GatePhase, Location, OwnMetric, ProbeScore, StepTimes, dump_json

PROFILE = "H100x8_driver550_cuda12.4_torch2.4_sm90"
OTHER_PROFILE = "cpu-epyc-7b13_8c_torch2.13"


def steps(mean_ms: float, count: int = 100, spread: float = 0.01, seed: int = 0) -> tuple[float, ...]:
    """Step times around `mean_ms`, the same for the same seed."""
    drawn = random.Random(seed)
    return tuple(round(mean_ms * (1 + drawn.gauss(0, spread)), 6) for _ in range(count))


def metrics(
    step_ms: float = 10.0, *, repeats: int = 4, between: float = 0.002, profile: str = PROFILE, tokens: float | None = 4096.0,
    samples: float | None = 32.0, memory: int | None = 8_000_000_000, slope: float | None = -0.002, seed: int = 1, **changed: object,
) -> GateMetrics:  # fmt: skip
    """What `repeats` runs measured whose medians differ by about `between`."""
    drawn = random.Random(seed)
    noise = [drawn.gauss(0, between) for _ in range(repeats)]
    middle = sum(noise) / repeats
    runs = []
    for number, each in enumerate(noise):
        times = steps(step_ms * (1 + each - middle), seed=seed + number)
        losses = () if slope is None else tuple((at, 2 + slope * at + drawn.gauss(0, 0.001)) for at in range(len(times)))
        runs.append(StepTimes(times, memory, losses))
    plain = {
        "machine_profile": profile, "commit": "1" * 40, "dirty": False, "source": "program", "command": ("python", "train.py"),
        "mode": "e2e", "world_size": 1, "warmup_steps": 20, "measure_steps": 100, "repeats": tuple(runs), "step_time_mean_ms": step_ms,
        "step_time_p50_ms": step_ms, "step_time_p90_ms": step_ms * 1.02, "tokens_per_step": tokens, "samples_per_step": samples,
        "tokens_from": None if tokens is None else "given", "tokens_per_sec_mean": tokens and tokens / step_ms * 1e3,
        "tokens_per_sec_p50": tokens and tokens / step_ms * 1e3, "tokens_per_sec_p10": tokens and tokens / step_ms * 980,
        "samples_per_sec_mean": samples and samples / step_ms * 1e3, "samples_per_sec_p50": samples and samples / step_ms * 1e3,
        "samples_per_sec_p10": samples and samples / step_ms * 980, "memory_peak_bytes": memory,
        "memory_of": None if memory is None else "device", "loss_slope": slope, "loss_first": 2.0, "loss_last": 1.8, "mfu_p50": None,
        "phases": {"Data": GatePhase(step_ms * 0.2, 0.2), "Fwd": GatePhase(step_ms * 0.8, 0.8)},
        "lines": (GateLine(Location("train.py", 12), "Data", step_ms * 0.2), GateLine(Location("train.py", 20), "Fwd", step_ms * 0.8)),
    }  # fmt: skip
    return GateMetrics(**{**plain, **changed})  # type: ignore[arg-type]


def evaluation(
    perplexity: float | None = 20.0, probes: dict[str, float] | None = None, *, profile: str = PROFILE, **changed: object
) -> GateEval:
    """What an evaluation found; `probes` are accuracies in per cent of 100 items."""
    scores = {"basic_reasoning_25": 60.0, "format_following_30": 90.0} if probes is None else probes
    plain = {
        "machine_profile": profile, "commit": "1" * 40, "dirty": False, "model": "tiny", "seed": 42, "temperature": 0.0,
        "shard_sha256": "ab" * 32, "tokenizer": "bytes", "max_tokens": 512, "tokens": 4000, "loss": 3.0, "perplexity": perplexity,
        "probes": tuple(ProbeScore(name, value, round(value), 100) for name, value in scores.items()),
    }  # fmt: skip
    return GateEval(**{**plain, **changed})  # type: ignore[arg-type]


def own_metric(value: float, better: str = "lower") -> GateEval:
    """An evaluation by a command of the owner's."""
    found = (OwnMetric(r"loss ([0-9.]+)", value, better, 1),)  # type: ignore[arg-type]
    return evaluation(None, {}, shard_sha256=None, tokenizer=None, max_tokens=None, tokens=None, loss=None, metrics=found)


def saved(path: Path, document: GateMetrics | GateEval, **edited: object) -> Path:
    """The document in a file; `edited` fields are set in the file's text, whatever their type."""
    plain = {**json.loads(dump_json(document)), **edited}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({name: value for name, value in plain.items() if value is not Ellipsis}, indent=2), encoding="utf-8")
    return path
