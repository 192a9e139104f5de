"""The verbs `gate env`, `gate bench` and `gate eval`: the owner's program runs in the sandbox, under the probe, as for a diagnosis."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from trainflash import launch, redact, telemetry, trace
from trainflash.errors import ProgramFailed, UsageError
from trainflash.fidelity import metric as owners_metric
from trainflash.fidelity import outputs, record
from trainflash.fidelity.reuse import Run
from trainflash.gate.config import BenchConfig, EvalConfig
from trainflash.gate.evaluate.evaluation import EvalSmall, rounded
from trainflash.gate.machines.environment import CollectEnv, interpreter_of
from trainflash.gate.measure import metrics, program_bench, traces
from trainflash.gate.measure.bench import BenchTrain
from trainflash.schema import Command, GateEnv, GateEval, GateMetrics, OwnMetric, RunRecord, StepTimes, write_document
from trainflash.summary import steady_part, summarize
from trainflash.workflow import capturing, inputs, replay_blocks
from trainflash.workflow import session as sessions
from trainflash.workflow.gates import sessions as gate_sessions
from trainflash.workflow.profiling import check_place
from trainflash.workflow.session import OnProgress, Session

GIVE_UP_S = 1800.0  # a program that has not come that far by then is stuck
STALL_S = 60.0  # of alternating blocks at most
STALL_BLOCK_S = 0.4  # shorter blocks measure the switch
SETTLE = 2  # steps after a switch that are not measured
EVALUATION_S = 3600.0
PROFILED = capturing.Window(wait=3, warmup=1, active=3, shapes=True)


@dataclass(frozen=True)
class HowToRun:
    """What every start of the owner's program shares."""

    in_place: bool = False
    online: bool = False
    writable: tuple[str, ...] = ()


def env(project: Path, command: tuple[str, ...] = ()) -> CollectEnv:
    """This machine, with the torch of the Python that `command` starts with."""
    return CollectEnv(project, interpreter_of(command))


def bench(
    session: Session,
    command: Command,
    config: BenchConfig,
    *,
    how: HowToRun,
    env: GateEnv,
    tokens_per_step: float | None = None,
    profile_dir: Path | None = None,
    stalls: bool = True,
) -> GateMetrics:
    """`metrics.json` of the owner's program as it is. Raises `ProgramFailed` where it fails, `UsageError` where it trains too few steps."""
    config.check()
    several = metrics.world_size(config, env)
    if config.world_size == 1:
        return _Bench(session, command, config, how, env, tokens_per_step, profile_dir, stalls).run()
    together = replace(command, argv=program_bench.with_processes(command.argv, several))
    found = _Bench(session, together, config, how, env, tokens_per_step, profile_dir, False).run()
    if found.world_size != several:
        raise ProgramFailed(
            f"{several} processes were started, but {found.world_size} trained together",
            "the program must join them itself (init_process_group and DDP), or be benched with --world-size 1",
        )
    alone = replace(command, argv=program_bench.with_processes(command.argv, 1))
    given = None if tokens_per_step is None else tokens_per_step / several
    one = _Bench(session, alone, replace(config, world_size=1, profile="off"), how, env, given, None, False).run()
    return replace(found, scaling=metrics.scaling(one, found))


@dataclass
class _Bench:
    """One benchmark of one number of processes. It runs the owner's state (`baseline`), never what an experiment left in `worktree`."""

    session: Session
    command: Command
    config: BenchConfig
    how: HowToRun
    env: GateEnv
    tokens_per_step: float | None
    profile_dir: Path | None
    stalls: bool

    def run(self) -> GateMetrics:
        config, total = self.config, self.config.warmup_steps + self.config.measure_steps
        facts_dir = self._start("facts", capture="diagnose", max_steps=total)
        seen = trace.load(facts_dir)
        part = steady_part(seen.ranks[0], min(config.warmup_steps, max(0, seen.ranks[0].steps - 1)))
        measured = telemetry.derive(telemetry.read(facts_dir / telemetry.FILE), part.from_ns, part.to_ns)
        summary = summarize(seen, run=facts_dir.name, project=self.session.sandbox.project, telemetry=measured)
        facts = program_bench.facts_of(seen, summary)
        notes = [*seen.others, *facts.notes]
        live, replayed, synthetic = self._stalls(facts, len(seen.ranks), notes)
        if config.mode == "synthetic":
            repeats = (synthetic,)
        else:
            repeats = tuple(self._repeat(number, total, losses=not facts.scaled_losses) for number in range(config.repeat))
        if facts.scaled_losses:
            notes.append("losses are scaled for float16 (GradScaler): their slope was not measured")
        work, profile_dir, regions = facts.work, None, ()
        if self.profile_dir is not None and config.profile != "off":
            marked = self._profile()
            regions, profile_dir = marked.regions, str(self.profile_dir)
            work = replace(work, counted=marked.operations, attention=marked.attention)
            notes.append(traces.NOT_TOLD)
        found = metrics.Measurement(
            source="program",
            repeats=tuple(replace(each, memory_peak_bytes=facts.memory_peak_bytes) for each in repeats),
            processes=len(seen.ranks),
            work=work,
            samples=facts.samples,
            device=facts.device,
            dtype=facts.dtype,
            memory_of=facts.memory_of,
            tokens_given=self.tokens_per_step,
            tokens_from="token ids that enter the model",
            command=redact.argv(self.command.argv),
            live_ms=live,
            replayed_ms=replayed,
            phases=facts.phases,
            lines=facts.lines,
            profile_dir=profile_dir,
            regions=regions,
            notes=tuple(notes),
        )
        return metrics.build(found, config, self.env)

    def _repeat(self, number: int, total: int, *, losses: bool) -> Any:
        run_dir = self._start(f"timed {number + 1} of {self.config.repeat}", capture="timing", max_steps=total)
        return program_bench.timed(trace.load(run_dir), run_dir, self.config.warmup_steps, self.config.measure_steps, losses=losses)

    def _stalls(self, facts: program_bench.ProgramFacts, ranks: int, notes: list[str]) -> tuple[tuple, tuple, Any]:
        """Live and replayed blocks, and the replayed steps alone; one more start."""
        wanted = self.config.mode == "synthetic"
        if not wanted and not self.stalls:
            return (), (), None
        reason = "several ranks train" if ranks > 1 else "no DataLoader feeds the training" if not facts.has_loader else ""
        if not reason:
            reason, live, replayed, synthetic = self._replayed()
            if not reason:
                return live, replayed, synthetic
        if wanted:
            raise UsageError(f"the program's batches cannot be replayed: {reason}", "bench it with --mode e2e, or as a step function")
        notes.append(f"stalls for data were not measured: {reason}")
        return (), (), None

    def _replayed(self) -> tuple[str, tuple, tuple, Any]:
        config = self.config
        asked = {
            "replay": "batches",
            "at": None,
            "value": None,
            "settle": max(SETTLE, min(config.warmup_steps, 20)),
            "block_s": STALL_BLOCK_S,
        }
        run_dir = self.session.new_run("gate")

        def on_step(done: int) -> None:
            blocks, _ = replay_blocks.read(run_dir)
            steps = sum(block.steps for block in blocks if block.mode == "replay")
            if len(blocks) >= 2 * replay_blocks.LEAST_PAIRS and (config.mode != "synthetic" or steps >= config.measure_steps):
                (run_dir / "replay-stop").touch()
            self.session.on_progress("bench, data replayed", len(blocks), 0)

        self._launch(run_dir, on_step, capture="timing", replay=json.dumps(asked), max_seconds=STALL_S)
        blocks, error = replay_blocks.read(run_dir)
        if error or not any(block.mode == "replay" for block in blocks):
            return error or "the program ended before anything was replayed", (), (), None
        seen = trace.load(run_dir)
        live, replayed = program_bench.blocks(seen.ranks[0], [(block.mode, block.first, block.steps) for block in blocks])
        steps = tuple(step for block in replayed for step in block)[: config.measure_steps]
        return "", live, replayed, StepTimes(steps)  # without losses: replayed batches train nothing

    def _profile(self) -> traces.Marked:
        assert self.profile_dir is not None
        window = replace(PROFILED, memory=self.config.profile == "tb", stacks=self.config.profile == "tb")
        run_dir = self._start("profiled", capture="timing", max_steps=window.steps + 1, profile=json.dumps(asdict(window)))
        recorded = sorted((run_dir / capturing.FOLDER).glob("*.pt.trace.json"))
        if not recorded:
            raise ProgramFailed(
                f"the program made fewer than {window.steps} steps, so none was profiled", "let it train longer, or leave out --profile"
            )
        self.profile_dir.mkdir(parents=True, exist_ok=True)
        marked = [traces.mark(path, self.profile_dir / path.name) for path in recorded]
        return marked[0]

    def _start(self, what: str, **options: Any) -> Path:
        run_dir = self.session.new_run("gate")
        total = options.get("max_steps", 0)
        with telemetry.recording(run_dir):
            self._launch(run_dir, lambda done: self.session.on_progress(f"bench, {what}", done, total), **options)
        if launch.steps_so_far(run_dir) == 0:
            trace.load(run_dir)  # says why there is nothing
        return run_dir

    def _launch(self, run_dir: Path, on_step: Callable[[int], None], **options: Any) -> RunRecord:
        record = launch.run(
            self.session.sandbox,
            "baseline",
            self.command,
            run_dir,
            **asdict(self.how),
            timeout=GIVE_UP_S,
            redact=redact.text,
            on_step=on_step,
            **options,
        )
        return launch.require_success(record)


def evaluate(
    session: Session,
    command: Command,
    texts: Sequence[str],
    *,
    how: HowToRun,
    env: GateEnv,
    better: str,
) -> GateEval:
    """`eval.json` of the owner's own evaluation: the last value of each metric in what the command prints or writes.

    Raises `ProgramFailed` where the command fails, `UsageError` where it shows no value of a metric or one that is no number.
    """
    box = session.sandbox
    parsed = [
        owners_metric.parse(
            text,
            0.0,
            folder=str(Path(box.baseline, box.prefix)),
            prefix=box.prefix,
            interpreter=interpreter_of(command.argv) or sys.executable,
        )
        for text in texts
    ]
    run_dir = session.new_run("gate")
    session.on_progress("evaluation", 0, 0)
    process = launch.start(
        box,
        "baseline",
        command,
        run_dir,
        capture="timing",
        in_place=how.in_place,
        online=how.online,
        writable=how.writable,
        redact=redact.text,
    )
    kept: Path | None = None
    try:
        if process.wait(EVALUATION_S) is None:
            process.kill("timed_out")
        elif not how.in_place:
            kept = outputs.gather(process.view, box, run_dir / "outputs")
    finally:
        ended = process.finish()
    launch.require_success(ended)
    run = Run(record.read(run_dir, whole=True), ended.wall_s, process.log, Path(box.repository) if how.in_place else kept)
    return GateEval(
        machine_profile=env.machine_profile,
        commit=env.commit,
        dirty=env.dirty,
        model=inputs.shown(command),
        seed=None,
        temperature=None,
        metrics=tuple(value_of(metric, run, better) for metric in parsed),
    )


def value_of(metric: owners_metric.Metric, run: Run, better: str) -> OwnMetric:
    """The last value of `metric` that `run` shows. Raises `UsageError` for none, `ProgramFailed` for one that is no number."""
    found = metric.values(run)
    if not found:
        raise UsageError(f"the evaluation shows no value of the metric {metric.text}", "see what it prints; mend the pattern")
    if not math.isfinite(found[-1]):
        raise ProgramFailed(f"the metric {metric.text} is {found[-1]}", "a model whose metric is no number passes no gate")
    return OwnMetric(metric.text, rounded(found[-1]), better, len(found))  # type: ignore[arg-type]


@contextlib.contextmanager
def session_for(project: Path, sandbox: Path | None, on_progress: OnProgress) -> Iterator[Session]:
    """The sandbox named, else one that holds the project as it is now; locked while it is used."""
    if sandbox is None:
        with gate_sessions.as_it_is(project, on_progress) as session:
            yield session
        return
    session, _ = sessions.open_session(project, sandbox, on_progress=on_progress)
    with session.locked():
        yield session


def bench_workload(spec: str, config: BenchConfig, project: Path, *, profile_dir: Path, on_progress: OnProgress) -> GateMetrics:
    """`metrics.json` of a step function, which runs here: its code is the benchmark's own, made to be run like a test."""
    return BenchTrain(config, spec, profile_dir=profile_dir, env=env(project).env, on_step=on_progress).run()


def evaluate_model(spec: str | None, project: Path, *, shard: str | None = None, probes: Sequence[str] | None = None) -> GateEval:
    """`eval.json` of the model that `spec` names (None: the reference model), on the `shard` and by `probes` (None: the defaults)."""
    asked = EvalConfig()
    if shard is not None:
        asked.fixed_shard_path = shard
    if probes is not None:
        asked.probes = tuple(probes)
    return EvalSmall(asked, spec, env=env(project).env).run()


def write(path: Path, found: GateMetrics | GateEval) -> None:
    """Write the document, whole or not at all. Raises `UsageError` where no file can be written."""
    check_place(path)
    write_document(path, found)
