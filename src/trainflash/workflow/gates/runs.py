"""`gate run` and `gate validate`: measure, evaluate and compare the owner's program in one go; and try the gate's promises here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainflash import stats
from trainflash.errors import UsageError
from trainflash.gate import baselines, comparison, runner, validation
from trainflash.gate.config import BenchConfig
from trainflash.gate.tolerances import ToleranceConfig
from trainflash.profile.sources import Request
from trainflash.profile.sources import load as read_trace
from trainflash.schema import Command, GateEval, GateMetrics, to_plain, write_atomically, write_document
from trainflash.schema.gate_changes import CompareResult, GateValidation
from trainflash.workflow.gates import checks as gate_checks
from trainflash.workflow.gates import gating
from trainflash.workflow.gates import pairs as gate_pairs
from trainflash.workflow.gates import sessions as gate_sessions
from trainflash.workflow.session import OnProgress, silent

IGNORED = "*\n"  # what a run writes is no change of the project


@dataclass(frozen=True)
class Asked:
    """One run of the gate. `against`: paired with that commit; None: with the stored baselines of `folder`.

    `metrics` are read from `evaluation` (None: the training command); `model` is what `gate eval --model` takes.
    """

    out_dir: Path
    folder: Path
    config: BenchConfig
    tolerances: ToleranceConfig
    how: gating.HowToRun
    against: str | None = None
    compare: bool = True
    permitted: bool = False  # a machine without a baseline may go on
    most_repeats: int = 8
    budget_s: float = 1200.0
    most_starts: int = stats.LOOKS[-1]
    metrics: tuple[str, ...] = ()
    better: str = "lower"
    evaluation: Command | None = None
    model: str | None = None
    tokens_per_step: float | None = None
    profile_dir: Path | None = None


def run(project: Path, command: Command, asked: Asked, on_progress: OnProgress = silent) -> tuple[CompareResult | None, dict[str, Path]]:
    """The comparison (None: not asked for) and the files written. In the paired mode the pairs are the benchmark."""
    asked.out_dir.mkdir(parents=True, exist_ok=True)
    write_atomically(asked.out_dir / ".gitignore", IGNORED)
    env = gating.env(project, command.argv)
    files = {"env": asked.out_dir / "env.json"}
    env.save(files["env"])
    if asked.against is not None and asked.compare:
        result = _paired(project, command, asked, on_progress, files)
    else:
        result = _stored(project, command, asked, on_progress, files, env)
    if result is not None:
        files["compare"] = asked.out_dir / "compare.json"
        write_document(files["compare"], result)
    return result, files


def cost(asked: Asked) -> str:
    """What it will cost, in one sentence to be said beforehand."""
    if asked.against is not None and asked.compare:
        return gate_pairs.cost(_demands(asked))
    starts = asked.config.repeat + 2  # once for facts, once with data replayed
    more = f", and up to {asked.most_repeats - asked.config.repeat} times more while the result is not clear"
    evaluated = ", and the evaluation once" if asked.metrics else ""
    return f"starts the program {starts} times{more if asked.compare and asked.most_repeats > asked.config.repeat else ''}{evaluated}"


def _demands(asked: Asked) -> gate_pairs.Demands:
    return gate_pairs.Demands(asked.tolerances, asked.budget_s, asked.most_starts, asked.metrics, asked.better, asked.evaluation, asked.how)


def _paired(project: Path, command: Command, asked: Asked, on_progress: OnProgress, files: dict[str, Path]) -> CompareResult:
    assert asked.against is not None
    results = [gate_pairs.compare(project, asked.against, command, _demands(asked), on_progress)]
    profile = results[0].machine_profile or ""
    if profile not in baselines.known_profiles(asked.folder, "metrics"):
        note = f"no stored baseline for machine profile {profile}; the pairs need none"
        results[0] = replace(results[0], notes=(*results[0].notes, note))
    if asked.model is not None:
        on_progress("evaluation", 0, 0)
        found = gating.evaluate_model(asked.model, project)
        files["eval"] = asked.out_dir / "eval.json"
        write_document(files["eval"], found)
        one = runner.against_stored(baselines.Loaded("eval", found, str(files["eval"])), asked.folder, asked.tolerances)
        results.append(comparison.permitted(one) if asked.permitted else one)
    return comparison.together(results)


def _stored(
    project: Path, command: Command, asked: Asked, on_progress: OnProgress, files: dict[str, Path], env: Any
) -> CompareResult | None:
    files["metrics"] = asked.out_dir / "metrics.json"
    with gate_sessions.as_it_is(project, on_progress) as session:

        def bench(config: BenchConfig) -> GateMetrics:
            return gating.bench(
                session, command, config, how=asked.how, env=env.env, tokens_per_step=asked.tokens_per_step, profile_dir=asked.profile_dir
            )

        measured = bench(asked.config)
        write_document(files["metrics"], measured)
        evaluated = _evaluated(session, project, command, asked, on_progress, env)
        if evaluated is not None:
            files["eval"] = asked.out_dir / "eval.json"
            write_document(files["eval"], evaluated)
        if not asked.compare:
            return None
        results = [_compared(project, measured, asked, files["metrics"])]
        for look in [look for look in stats.LOOKS if look <= asked.most_repeats]:
            missing = look - len(measured.repeats)
            if results[0].result != "inconclusive" or not results[0].checks or missing <= 0:
                continue
            on_progress(f"not clear after {len(measured.repeats)} runs, {missing} more", 0, 0)
            measured = runner.more(measured, bench(replace(asked.config, repeat=missing, profile="off")))
            write_document(files["metrics"], measured)
            results = [_compared(project, measured, asked, files["metrics"])]
    if evaluated is not None:
        results.append(_compared(project, evaluated, asked, files["eval"]))
    return comparison.together([comparison.permitted(each) if asked.permitted else each for each in results])


def _compared(project: Path, document: GateMetrics | GateEval, asked: Asked, path: Path) -> CompareResult:
    name = "metrics" if isinstance(document, GateMetrics) else "eval"
    return gate_checks.compare(project, gate_checks.Measured(**{name: path}), asked.folder, asked.tolerances)


def _evaluated(session: Any, project: Path, command: Command, asked: Asked, on_progress: OnProgress, env: Any) -> GateEval | None:
    if asked.metrics:
        return gating.evaluate(session, asked.evaluation or command, asked.metrics, how=asked.how, env=env.env, better=asked.better)
    if asked.model is None:
        return None
    on_progress("evaluation", 0, 0)
    return gating.evaluate_model(asked.model, project)


def validate(
    project: Path,
    command: Command,
    config: BenchConfig,
    how: gating.HowToRun,
    held: ToleranceConfig,
    out_dir: Path,
    on_progress: OnProgress,
) -> GateValidation:
    """The three promises, tried with the owner's program: stable documents that repeat, traces that open, a gate that stops."""
    if config.repeat < validation.RUNS:
        config = replace(config, repeat=validation.RUNS)
    out_dir.mkdir(parents=True, exist_ok=True)
    write_atomically(out_dir / ".gitignore", IGNORED)
    env = gating.env(project, command.argv)
    profiles = out_dir / "profile"
    with gate_sessions.as_it_is(project, on_progress) as session:
        measured = gating.bench(session, command, replace(config, profile="trace"), how=how, env=env.env, profile_dir=profiles)
    write_document(out_dir / "metrics.json", measured)
    evaluated = [gating.evaluate_model(None, project) for _ in range(2)]
    write_document(out_dir / "eval.json", evaluated[0])
    return validation.validate(measured, (to_plain(evaluated[0]), to_plain(evaluated[1])), held, _steps_of_traces(profiles))


def _steps_of_traces(folder: Path) -> Callable[[], int]:
    """How many events the traces hold, by the reader of `trainflash profile`. Raises `UsageError` where it cannot read them."""

    def count() -> int:
        if not folder.is_dir():
            raise UsageError(f"{folder} was not written", "see the notes of metrics.json")
        found = read_trace(Request(profile_dir=folder, columns=frozenset()), lambda name: None)
        return sum(len(each.events) for each in found.traces)

    return count
