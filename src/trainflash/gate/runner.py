"""`BenchRunner`: environment, benchmark, evaluation and comparison in one go, for a step function and a model of the caller's."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainflash import stats
from trainflash.errors import UsageError
from trainflash.gate import baselines, comparison
from trainflash.gate.config import BenchConfig, EvalConfig
from trainflash.gate.evaluate.evaluation import EvalSmall
from trainflash.gate.machines.environment import CollectEnv
from trainflash.gate.measure.bench import BenchTrain
from trainflash.gate.measure.metrics import slope
from trainflash.gate.tolerances import ToleranceConfig
from trainflash.schema import GateMetrics, to_plain, write_document
from trainflash.schema.gate_changes import CompareResult

MODES = ("env", "bench", "eval", "compare")
FILES = {"bench": "metrics.json", "eval": "eval.json"}  # what can be compared, by the mode that writes it


class BenchRunner:
    """The modes are run in their own order, whatever the order asked; each writes its file below `out_dir`."""

    def run(
        self,
        modes: Sequence[str],
        *,
        bench: BenchConfig | None = None,
        eval: EvalConfig | None = None,
        tolerances: ToleranceConfig | None = None,
        workload: Any = None,
        model: Any = None,
        out_dir: str | Path = ".",
        baselines_dir: str | Path = baselines.FOLDER,
        project: str | Path = ".",
    ) -> dict[str, Any]:
        """Plain data by mode. `workload` is what `BenchTrain` takes, `model` what `EvalSmall` takes; None: the reference model.

        `compare` holds what was measured here, else the files of an earlier run in `out_dir`, against the stored baselines; a machine
        without one is `inconclusive`. Raises `UsageError` for an unknown mode.
        """
        unknown = [mode for mode in modes if mode not in MODES]
        if unknown or not modes:
            raise UsageError(f"there is no mode {unknown[0]!r}" if unknown else "no mode was asked for", f"modes: {', '.join(MODES)}")
        folder = Path(out_dir)
        env = CollectEnv(project)
        found: dict[str, Any] = {}
        if "env" in modes:
            env.save(folder / "env.json")
            found["env"] = env.collect()
        if "bench" in modes:
            asked = bench or BenchConfig()
            measured = BenchTrain(asked, workload, profile_dir=folder / "profile", env=env.env).run()
            write_document(folder / FILES["bench"], measured)
            found["bench"] = to_plain(measured)
        if "eval" in modes:
            evaluated = EvalSmall(eval or EvalConfig(), model, env=env.env).run()
            write_document(folder / FILES["eval"], evaluated)
            found["eval"] = to_plain(evaluated)
        if "compare" in modes:
            here = [name for mode, name in FILES.items() if mode in modes]
            found["compare"] = to_plain(
                _compared(folder, here or list(FILES.values()), Path(baselines_dir), tolerances or ToleranceConfig())
            )
        return found


def _compared(folder: Path, names: Sequence[str], stored: Path, tolerances: ToleranceConfig) -> CompareResult:
    files = [path for name in names if (path := folder / name).exists()]
    if not files:
        raise UsageError(f"{folder} holds no metrics.json and no eval.json", "run the modes bench and eval first, or with compare")
    return comparison.together([against_stored(baselines.load(path), stored, tolerances.check()) for path in files])


def against_stored(current: baselines.Loaded, folder: Path, tolerances: ToleranceConfig) -> CompareResult:
    """One document against the stored baseline of its machine profile."""
    before = baselines.stored(folder, current.document.machine_profile, current.kind)
    return comparison.no_baseline(current, folder) if before is None else comparison.compare(current, before, tolerances)


def more(first: GateMetrics, second: GateMetrics) -> GateMetrics:
    """Two benchmarks of the same program as one, with the repeats of both. Raises `UsageError` where they are unlike."""
    for name in ("machine_profile", "commit", "command", "mode", "world_size"):
        if getattr(first, name) != getattr(second, name):
            raise UsageError(f"{name} was {getattr(first, name)}, is {getattr(second, name)}", "measure all repeats of one state")
    repeats = (*first.repeats, *second.repeats)
    steps = [step for repeat in repeats for step in repeat.step_ms]
    times = (statistics.fmean(steps), stats.quantile(steps, 0.5), stats.quantile(steps, 0.9))
    memory = [first.memory_peak_bytes, second.memory_peak_bytes]
    rates = {
        f"{work}_per_sec_{name}": None if amount is None or not step_ms else amount / step_ms * 1e3
        for work, amount in (("tokens", first.tokens_per_step), ("samples", first.samples_per_step))
        for name, step_ms in zip(("mean", "p50", "p10"), times, strict=True)
    }
    return replace(
        first,
        repeats=repeats,
        step_time_mean_ms=times[0],
        step_time_p50_ms=times[1],
        step_time_p90_ms=times[2],
        memory_peak_bytes=None if any(peak is None for peak in memory) else max(memory),  # type: ignore[type-var]
        **_operations(first, times[0], times[1]),
        loss_slope=slope(repeats),
        **rates,
    )


def _operations(first: GateMetrics, mean_ms: float, p50_ms: float | None) -> dict[str, Any]:
    """MFU and what it rests on, for the steps of both."""
    if first.flops is None or not first.step_time_p50_ms or not first.step_time_mean_ms or not p50_ms:
        return {}
    by_p50, by_mean = first.step_time_p50_ms / p50_ms, first.step_time_mean_ms / mean_ms
    achieved, share, mean_share = first.flops.achieved_tflops, first.mfu_p50, first.flops.mfu_mean
    operations = replace(
        first.flops,
        achieved_tflops=None if achieved is None else achieved * by_p50,
        mfu_mean=None if mean_share is None else mean_share * by_mean,
    )
    return {"flops": operations, "mfu_p50": None if share is None else share * by_p50}
