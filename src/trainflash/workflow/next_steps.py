"""What the owner could do next where nothing awaits approval: each with the command to type and the time that it needs."""

from __future__ import annotations

import math
import shlex

from trainflash import redact, report
from trainflash.schema import Candidate, Experiment, Plan, RunRecord, read_document
from trainflash.workflow import ordering
from trainflash.workflow.session import Session

ENOUGH = 1.5  # of what a verdict is expected to cost: a budget that is just enough ends a few starts short


def after(session: Session) -> tuple[report.NextStep, ...]:
    """The next candidate of the newest plan, an experiment that ended open, and the largest cost that is left to whoever writes a patch."""
    plan = session.plan()
    if plan is None:
        return ()
    command = _typed(session, plan)
    if plan.abstained:
        return tuple(report.NextStep(each, "") for each in plan.advice)
    made = [one for one in session.experiments() if one.parent_commit == session.tip()]
    found = [_gone_on_with(session, one, command) for one in _open(made)[:1]]
    found += [_tried(session, each, command) for each in _untried(plan, made)[:1]]
    settled = {one.finding for one in session.accepted()}
    found += [_written(plan, kind, command) for kind in dict.fromkeys(brief.finding for brief in plan.briefs) if kind not in settled][:1]
    return tuple(found)


def _untried(plan: Plan, made: list[Experiment]) -> list[Candidate]:
    known = {(one.knob, one.value) for one in made}
    return [each for each in plan.candidates if (each.knob, each.value) not in known]


def _open(made: list[Experiment]) -> list[Experiment]:
    """Experiments that were faster so far when their time was over, the largest gain first."""
    unsure = [one for one in made if one.decision == "inconclusive" and one.verdict and one.verdict.gain > 1]
    return sorted(unsure, key=lambda one: -one.verdict.gain if one.verdict else 0.0)


def _gone_on_with(session: Session, one: Experiment, command: str) -> report.NextStep:
    price = ordering.price(session)
    budget = _minutes(ENOUGH * price.of(one.verdict.gain if one.verdict else 1.0))
    said = f"{one.knob} = {one.value} was faster so far, and nothing is proven: go on with it where the machine is quiet"
    return report.NextStep(said, f"trainflash verify --experiment {one.n} --budget {budget} -- {command}")


def _tried(session: Session, candidate: Candidate, command: str) -> report.NextStep:
    saved = candidate.worth.saved_share if candidate.worth else 0.0
    price = ordering.price(session)
    budget = _minutes(ENOUGH * price.of(1 / (1 - min(saved, 0.999))))
    value = f"={candidate.value}" if _typable(candidate.value) else ""
    at = f" --at {shlex.quote(str(candidate.location))}" if candidate.location and not candidate.words and not candidate.environment else ""
    allow = f" --allow {candidate.risk}" if candidate.risk not in {"same", "close"} else ""
    said = f"{candidate.knob} = {candidate.value} was not tried yet; it saves at most {saved:.0%} of the time"
    return report.NextStep(said, f"trainflash optimize try {candidate.knob}{value}{at}{allow} --budget {budget} -- {command}")


def _written(plan: Plan, kind: str, command: str) -> report.NextStep:
    brief = next(each for each in plan.briefs if each.finding == kind)
    said = f"for whoever writes a patch, the largest cost that no setting and no transform settled: {brief.summary}"
    return report.NextStep(said, f"trainflash optimize brief --finding {kind} -- {command}")


def _typable(value: str) -> bool:
    return value.lower() in {"true", "false"} or value.isdigit()


def _minutes(seconds: float) -> str:
    return f"{max(1, math.ceil(seconds / 60))}m"


def _typed(session: Session, plan: Plan) -> str:
    """The command that the plan is about, as it was typed."""
    record = session.directory / "runs" / plan.run / "run.json"
    return shlex.join(redact.argv(read_document(RunRecord, record).command.argv)) if record.is_file() else "CMD"
