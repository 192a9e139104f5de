"""`BenchTrain`: how fast a training step runs on this machine, measured on a step function of the owner's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainflash.errors import ProgramFailed, UsageError
from trainflash.gate.config import BenchConfig
from trainflash.gate.machines.environment import CollectEnv
from trainflash.gate.measure import metrics, workload
from trainflash.gate.measure.workload import Factory
from trainflash.schema import GateEnv, GateMetrics, StepTimes, from_plain, to_plain, write_document

if TYPE_CHECKING:
    from trainflash.gate.measure.step_bench import Measured

BenchResult = GateMetrics
OnStep = Callable[[str, int, int], None]
_NO_TORCH = "a step function needs torch in this interpreter; bench the program itself with `trainflash gate bench -- CMD`"


class BenchTrain:
    """Measures the workload that `factory` builds (`MODULE:FUNCTION`, `FILE.py:FUNCTION`, or the function; None: the reference model).

    Under torchrun every rank calls `run`, and every rank gets the result. With a larger `world_size` than one, torchrun is started here:
    first with all processes, then with one, and `scaling` compares the two.
    """

    def __init__(
        self,
        config: BenchConfig,
        factory: str | Factory | None = None,
        *,
        profile_dir: str | Path = "profile",
        env: GateEnv | None = None,
        on_step: OnStep = lambda label, done, total: None,
    ) -> None:
        self.config = config.check()
        self._factory = factory if factory is not None else f"{Path(__file__).with_name('reference.py')}:workload"
        self._profile_dir = Path(profile_dir)
        self._env = env
        self._on_step = on_step
        self._result: GateMetrics | None = None

    def run(self) -> BenchResult:
        """Measure. Raises `ProgramFailed` where the step fails or its loss is no number, `UsageError` for what cannot be asked."""
        env = self._env or CollectEnv().env
        if env.torch is None:
            raise UsageError("torch cannot be imported here", _NO_TORCH)
        several = metrics.world_size(self.config, env)
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            found = self._here(env, int(os.environ["WORLD_SIZE"]))
        elif several == 1:
            found = self._here(env, 1)
        else:
            found = self._started(env, several)
            alone = replace(self.config, world_size=1, profile="off")
            one = BenchTrain(alone, self._factory, env=env, on_step=self._on_step)._started(env, 1)
            found = replace(found, scaling=metrics.scaling(one, found))
        self._result = found
        return found

    def save(self, path: str | Path) -> None:
        """Write `metrics.json`; measures first where nothing was."""
        write_document(Path(path), self._result or self.run())

    def _here(self, env: GateEnv, processes: int) -> GateMetrics:
        from trainflash.gate.measure import step_bench

        factory = workload.load(self._factory) if isinstance(self._factory, str) else self._factory
        total = self.config.warmup_steps + self.config.measure_steps
        repeats: list[Measured] = []
        for number in range(self.config.repeat):
            label = f"bench {number + 1} of {self.config.repeat}"
            last = number + 1 == self.config.repeat
            profile_dir = self._profile_dir if last and self.config.profile != "off" else None
            repeats.append(
                step_bench.measure(
                    factory, self.config, profile_dir=profile_dir, on_step=lambda done, label=label: self._on_step(label, done, total)
                )
            )
        return metrics.build(_measurement(repeats, processes, workload.shown(self._factory)), self.config, env)

    def _started(self, env: GateEnv, processes: int) -> GateMetrics:
        """The same in processes that torchrun starts."""
        spec = self._factory if isinstance(self._factory, str) else workload.name_of(self._factory)
        if spec is None:
            raise UsageError(
                "the workload's function cannot be found by other processes",
                "define it at the top of a module, or start with torchrun",
            )
        with tempfile.TemporaryDirectory(prefix="trainflash-gate-") as folder:
            out = Path(folder, "metrics.json")
            asked = {
                "spec": spec, "out": str(out), "profile_dir": str(self._profile_dir.absolute()),
                "config": asdict(replace(self.config, world_size=1)), "env": to_plain(env),
            }  # fmt: skip
            request = Path(folder, "request.json")
            request.write_text(json.dumps(asked))
            self._on_step(f"bench on {processes} processes" if processes > 1 else "bench on one process", 0, 0)
            command = [
                sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes),
                "-m", "trainflash.gate.measure.rank", str(request),
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment(), errors="replace")
            if done.returncode or not out.is_file():
                problem = _said(Path(folder, "problem.json"))
                raise ProgramFailed(
                    problem or f"the benchmark on {processes} processes ended with exit code {done.returncode}",
                    "its own output is shown; make it run with torchrun by hand first",
                    returncode=done.returncode,
                    output="\n".join((done.stdout + done.stderr).splitlines()[-40:]),
                )
            return from_plain(GateMetrics, json.loads(out.read_text()), str(out))


def _measurement(repeats: list[Measured], processes: int, name: str) -> metrics.Measurement:
    from trainflash.gate.measure.step_bench import REGIONS

    last = repeats[-1]
    return metrics.Measurement(
        source="step_function",
        command=(name,),
        repeats=tuple(StepTimes(tuple(each.step_ms), each.memory_peak_bytes, tuple(enumerate(each.losses))) for each in repeats),
        processes=processes,
        work=last.work,
        samples=last.samples,
        device=last.device,
        dtype=last.dtype,
        memory_of=last.memory_of,
        tokens_from="the batches" if last.work.tokens is not None else None,
        live_ms=tuple(tuple(block) for each in repeats for block in each.live_ms),
        replayed_ms=tuple(tuple(block) for each in repeats for block in each.replayed_ms),
        profile_dir=last.profile_dir,
        regions=metrics.regions_in(Path(last.profile_dir), REGIONS) if last.profile_dir else (),
        notes=tuple(note for each in repeats for note in each.notes),
    )


def _environment() -> dict[str, str]:
    """Ours, in which trainflash can be imported and each process has its share of the cores unless the owner says otherwise."""
    here = str(Path(__file__).resolve().parents[3])
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, before] if before else [here])}


def _said(path: Path) -> str | None:
    try:
        return str(json.loads(path.read_text())["message"])
    except (OSError, ValueError, KeyError):
        return None
