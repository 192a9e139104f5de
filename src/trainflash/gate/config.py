"""What a benchmark and an evaluation are asked to do; defaults are the gate's contract."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from trainflash.errors import UsageError

PROBES = ("basic_reasoning_25", "format_following_30", "code_sanity_20")
SHARD = "bench/data/fixed_shard.txt"
MODES = ("e2e", "synthetic")
PROFILES = ("off", "trace", "tb")
ESTIMATORS = ("6ND", "transformer_aware")


@dataclass
class BenchConfig:
    """How a benchmark runs. `world_size` −1: every accelerator of this machine, one process where there is none."""

    warmup_steps: int = 200
    measure_steps: int = 100
    mode: Literal["e2e", "synthetic"] = "e2e"
    world_size: int = 1
    profile: Literal["off", "trace", "tb"] = "off"
    repeat: int = 1
    peak_tflops: float | None = None
    mfu_estimator: Literal["6ND", "transformer_aware"] = "6ND"

    def check(self) -> BenchConfig:
        """Itself. Raises `UsageError` naming the field that cannot be."""
        _whole("warmup_steps", self.warmup_steps, 0)
        _whole("measure_steps", self.measure_steps, 1)
        _whole("repeat", self.repeat, 1)
        _one_of("mode", self.mode, MODES)
        _one_of("profile", self.profile, PROFILES)
        _one_of("mfu_estimator", self.mfu_estimator, ESTIMATORS)
        if self.world_size != -1:
            _whole("world_size", self.world_size, 1)
        if self.peak_tflops is not None and not (_is_number(self.peak_tflops) and 0 < self.peak_tflops < math.inf):
            raise UsageError(f"peak_tflops is {self.peak_tflops!r}", "give the accelerator's dense peak, such as 989.4, or leave it out")
        return self


@dataclass
class EvalConfig:
    """How a model is evaluated. A relative shard that is not below the working directory is the bundled one."""

    fixed_shard_path: str = SHARD
    probes: list[str] | tuple[str, ...] = PROBES
    temperature: float = 0.0
    seed: int = 42

    def check(self) -> EvalConfig:
        """Itself. Raises `UsageError` naming the field that cannot be."""
        unknown = [name for name in self.probes if name not in PROBES]
        if unknown:
            raise UsageError(f"there is no probe {unknown[0]!r}", f"probes: {', '.join(PROBES)}")
        if self.temperature != 0:
            raise UsageError(f"a temperature of {self.temperature!r} draws answers", "a gate decodes greedily: temperature 0")
        _whole("seed", self.seed, 0)
        return self


def _whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} is {value!r}", f"give a whole number from {least} on")


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{name} is {value!r}", f"one of {', '.join(known)}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
