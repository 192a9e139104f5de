"""`gate compare --against REF`: that commit and this state of the project, interleaved here and now. Needs no stored baseline."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainflash import bench, launch, redact, telemetry, trace
from trainflash import sandbox as sandboxes
from trainflash.bench.costs import resources
from trainflash.errors import ProgramFailed, UsageError
from trainflash.fidelity import work as seen_work
from trainflash.gate import comparison, pairs, slower
from trainflash.gate.measure import program_bench
from trainflash.gate.tolerances import ToleranceConfig, rule
from trainflash.sandbox import refs
from trainflash.schema import Command, Runs, Side, SpeedVerdict
from trainflash.schema.gate_changes import ComparedRun, CompareResult, GateCheck
from trainflash.summary import steady_part, summarize
from trainflash.workflow import verifying
from trainflash.workflow.gates import gating
from trainflash.workflow.gates import sessions as gate_sessions
from trainflash.workflow.session import OnProgress, Session, silent

FACTS_STEPS = 20  # phases and lines of fewer are mostly noise
FACTS_S = 20.0
SIDES: tuple[Side, Side] = ("baseline", "candidate")


@dataclass(frozen=True)
class Demands:
    """What a paired comparison is held to. `metrics` are read from `evaluation` (None: from the training command) on both sides."""

    tolerances: ToleranceConfig = field(default_factory=ToleranceConfig)
    budget_s: float = 1200.0
    most_starts: int = pairs.MOST_STARTS
    metrics: tuple[str, ...] = ()
    better: str = "lower"
    evaluation: Command | None = None
    how: gating.HowToRun = field(default_factory=gating.HowToRun)


@dataclass(frozen=True)
class _Pair:
    session: Session
    project: Path
    sha: str  # the owner's commit
    commits: dict[Side, str]  # as the sandbox holds them


def cost(demands: Demands) -> str:
    """What a paired comparison will cost, in one sentence to be said beforehand."""
    evaluations = f", and the evaluation {len(SIDES)} times" if demands.metrics else ""
    return f"{bench.cost(demands.budget_s)}; once more each for phases and lines{evaluations}"


def compare(project: Path, ref: str, command: Command, demands: Demands, on_progress: OnProgress = silent) -> CompareResult:
    """May this state of the project pass, beside commit `ref`?

    Raises `UsageError` for an unknown commit, `ProgramFailed` where the program fails at that commit already.
    """
    began = time.monotonic()
    if demands.budget_s < verifying.LEAST_BUDGET_S:
        raise UsageError(f"a budget of {demands.budget_s:.0f} s is too small", f"give at least {verifying.LEAST_BUDGET_S:.0f}s")
    refs.commit_named(project, ref)  # a wrong name is said before anything is measured
    env = gating.env(project, command.argv).env
    with _pair(project, ref, on_progress) as pair:
        result = CompareResult(
            result="inconclusive",
            mode="paired",
            compared=True,
            machine_profile=env.machine_profile,
            baseline=ComparedRun(pair.sha, env.machine_profile, ref, None),
            current=ComparedRun(None if env.dirty else env.commit, env.machine_profile, "the project as it is now", None),
            checks=(),
            notes=("the project has changes that no commit holds: they are measured too",) if env.dirty else (),
        )
        quality = _quality(pair, command, demands)
        facts = {side: _facts(pair, side, command, demands) for side in SIDES}
        work = _work(facts)
        runs, verdict, directory, edited = _timed(pair, command, demands, work)
        speed = pairs.checks(verdict, runs.starts, resources(runs.starts), work, demands.tolerances)
        checks = [*speed, _stability(directory, facts, demands), *quality]
        starts = sum(start.y is not None for start in runs.starts)
        result = replace(
            result,
            baseline=replace(result.baseline, repeats=starts),
            current=replace(result.current, repeats=starts),
            slower=_slower(pair, facts) if any(check.result == "fail" and check.gate == "performance" for check in checks) else (),
            spent_s=round(time.monotonic() - began, 1),
        )
    judged = comparison.judged(result, checks)
    if edited:
        return replace(judged, result="inconclusive", reasons=("the checkouts were edited while they were measured", *judged.reasons))
    mend = "give more time (--budget), or a quieter machine" if judged.result == "inconclusive" else ""
    return replace(judged, mend=mend)


@contextlib.contextmanager
def _pair(project: Path, ref: str, on_progress: OnProgress) -> Iterator[_Pair]:
    """Both commits in one sandbox."""
    sha = refs.commit_named(project, ref)
    with gate_sessions.as_it_is(project, on_progress) as session:
        commits: dict[Side, str] = {"baseline": refs.adopt(session.sandbox, sha), "candidate": session.sandbox.base_ref}
        for side in SIDES:
            session.take(side, commits[side])
        yield _Pair(session, project, sha, commits)


def _facts(pair: _Pair, side: Side, command: Command, demands: Demands) -> program_bench.ProgramFacts | None:
    """Phases, lines and the work of a step on one side. None: the candidate fails, which the timed starts will judge."""
    run_dir = pair.session.new_run("gate")
    label = f"what a step of {'that commit' if side == 'baseline' else 'this one'} is"
    pair.session.on_progress(label, 0, 0)
    try:
        with telemetry.recording(run_dir):
            record = launch.run(
                pair.session.sandbox,
                side,
                command,
                run_dir,
                capture="diagnose",
                max_seconds=FACTS_S,
                min_steps=FACTS_STEPS,
                in_place=False,
                online=demands.how.online,
                writable=demands.how.writable,
                timeout=demands.budget_s,
                redact=redact.text,
                on_step=lambda done: pair.session.on_progress(label, done, 0),
            )
        launch.require_success(record)
        seen = trace.load(run_dir)
    except ProgramFailed:
        if side == "baseline":
            raise
        return None
    part = steady_part(seen.ranks[0], None)
    measured = telemetry.derive(telemetry.read(run_dir / telemetry.FILE), part.from_ns, part.to_ns)
    return program_bench.facts_of(seen, summarize(seen, run=run_dir.name, project=pair.session.sandbox.project, telemetry=measured))


def _work(facts: dict[Side, program_bench.ProgramFacts | None]) -> pairs.Work:
    ours, theirs = facts["baseline"], facts["candidate"]
    if ours is None or theirs is None:
        return pairs.Work()
    tokens = (ours.work.tokens, theirs.work.tokens) if ours.work.tokens and theirs.work.tokens else None
    samples = (ours.samples, theirs.samples) if ours.samples and theirs.samples else None
    return pairs.Work(tokens, samples)


def _timed(pair: _Pair, command: Command, demands: Demands, work: pairs.Work) -> tuple[Runs, SpeedVerdict, Path, bool]:
    """The interleaved starts, by the schedule and clock of `bench`, and where they lie; whether somebody edited a checkout meanwhile."""
    session = pair.session
    contents = _contents(session)
    directory = verifying.pair_directory(session, command, command, contents)
    amounts, unit = work.compared
    asked = bench.asked_before(directory)
    if asked is not None and asked.unit != unit:
        directory = directory.with_name(f"{directory.name}-{unit}")
    elif asked is not None:
        amounts = asked.work
    runs, verdict = bench.compare(
        session.sandbox,
        command,
        command,
        directory,
        budget_s=demands.budget_s,
        question=bench.Question("..".join(contents), asked.first_epoch if asked and asked.unit == unit else 0, amounts, unit),
        on_progress=session.on_progress,
        online=demands.how.online,
        writable=demands.how.writable,
        redact=redact.text,
        shown=replace(command, argv=redact.argv(command.argv), env=redact.environment(command.env)),
        judge=pairs.judge_by(pairs.limit(demands.tolerances, unit), demands.most_starts),
    )
    edited = _contents(session) != contents
    if edited:
        bench.forget_after(directory, runs.kept_from_before)
    return runs, verdict, directory, edited


def _stability(directory: Path, facts: dict[Side, program_bench.ProgramFacts | None], demands: Demands) -> GateCheck:
    """The losses of the timed starts. Those that a GradScaler scales are no losses: their size is its factor."""
    if any(seen is not None and seen.scaled_losses for seen in facts.values()):
        return comparison.skipped(rule("loss_slope"), None, None, demands.tolerances, "losses are scaled for float16 (GradScaler)")
    starts = verifying.timed_runs(directory)
    return pairs.stability([(_losses(theirs), _losses(ours)) for theirs, ours in starts], demands.tolerances)


def _losses(run_dir: Path) -> pairs.Losses:
    """The first rank's, by step."""
    seen = seen_work.read(run_dir)
    return [(step, sum(each["losses"])) for (rank, step), each in sorted(seen.items()) if rank == 0 and each["losses"]]


def _quality(pair: _Pair, command: Command, demands: Demands) -> list[GateCheck]:
    """The owner's evaluation on both commits, held against each other."""
    if not demands.metrics:
        return []
    session, found = pair.session, {}
    asked = demands.evaluation or command
    env = gating.env(pair.project, asked.argv).env
    try:
        for side in SIDES:
            session.take("baseline", pair.commits[side])
            session.on_progress(f"evaluation of {'that commit' if side == 'baseline' else 'this one'}", 0, 0)
            found[side] = gating.evaluate(session, asked, demands.metrics, how=demands.how, env=env, better=demands.better)
    finally:
        session.take("baseline", pair.commits["baseline"])
    return comparison.of_eval(found["baseline"], found["candidate"], demands.tolerances)


def _slower(pair: _Pair, facts: dict[Side, program_bench.ProgramFacts | None]) -> tuple:
    ours, theirs = facts["baseline"], facts["candidate"]
    if ours is None or theirs is None:
        return ()
    before, now = (_source(sandboxes.project_in(pair.session.sandbox, side)) for side in SIDES)
    return slower.parts(ours, theirs, slower.moved_between(before, now))


def _source(folder: Path) -> slower.Source:
    def text(name: str) -> str | None:
        try:
            return (folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    return text


def _contents(session: Session) -> tuple[str, str]:
    return sandboxes.content(session.sandbox, "baseline"), sandboxes.content(session.sandbox, "candidate")
