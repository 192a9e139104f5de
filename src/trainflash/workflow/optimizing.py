"""From findings to experiments: the plan first, then one knob at a time, each a commit in the sandbox, each with a verdict."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash import knobs, sandbox
from trainflash.errors import ProgramFailed, TrainFlashError, UsageError
from trainflash.schema import (
    Candidate,
    Command,
    Diagnosis,
    Experiment,
    Location,
    Plan,
    Summary,
    Verdict,
    write_document,
)
from trainflash.workflow import diagnosing, verifying
from trainflash.workflow.session import Session, now_utc
from trainflash.workflow.verifying import Demands


def plan(session: Session, diagnosis: Diagnosis, summary: Summary, command: Command) -> Plan:
    """Write `plan.yaml`: what could be tried on top of what was accepted, best first."""
    session.take("candidate", session.tip())
    checkout = sandbox.project_in(session.sandbox, "candidate")
    candidates, refused, briefs = knobs.plan(diagnosis, summary, checkout, command)
    made = Plan(run=diagnosis.run, created_utc=now_utc(), candidates=candidates, refused=refused, briefs=briefs)
    write_document(session.plan_path, made)
    return made


def propose(session: Session, knob: str, value: str | None, at: Location | None, command: Command) -> Candidate:
    """One knob chosen by hand, as a candidate. Raises `UsageError` when it does not apply here, with the reason."""
    known = diagnosing.latest(session, command)
    if known is None:
        raise UsageError("this command was not diagnosed in this sandbox yet", "run `trainflash diagnose -- CMD` with it first")
    session.take("candidate", session.tip())
    checkout = sandbox.project_in(session.sandbox, "candidate")
    return knobs.propose(knobs.get(knob), value, at, diagnosis=known[0], summary=known[1], checkout=checkout, command=command)


def from_patch(patch: Path, why: str = "") -> Candidate:
    """A candidate from a patch file that a person or an assistant wrote; its effect on the training is not presumed."""
    try:
        text = patch.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as bad:
        raise UsageError(f"{patch}: {bad.strerror}", "name a unified diff, such as the output of `git diff`") from None
    return Candidate(
        knob="patch",
        value=patch.name,
        finding="host_code",
        location=None,
        risk="same",
        diff=text,
        why=why or f"patch {patch.name}",
    )


def try_candidate(session: Session, candidate: Candidate, command: Command, demands: Demands) -> Experiment:
    """Commit the candidate on top of what was accepted, judge it, and keep it in `worktree/` only if it was accepted."""
    if demands.budget_s < verifying.LEAST_BUDGET_S:
        raise UsageError(
            f"a budget of {demands.budget_s:.0f} s is too small for a verdict", f"give at least {verifying.LEAST_BUDGET_S:.0f}s"
        )
    parent_commit = session.tip()
    accepted = session.accepted()
    session.take("candidate", parent_commit)
    n = 1 + max((experiment.n for experiment in session.experiments()), default=0)
    commit = sandbox.commit_diff(session.sandbox, candidate.diff, f"experiment {n}: {candidate.knob} {candidate.value}".rstrip())
    diff = sandbox.diff(session.sandbox, parent_commit, commit)
    experiment = Experiment(
        n=n,
        parent=accepted[-1].n if accepted else None,
        knob=candidate.knob,
        value=candidate.value,
        finding=candidate.finding,
        location=candidate.location,
        risk=candidate.risk,
        why=candidate.why,
        commit=commit,
        parent_commit=parent_commit,
        diff_digest=hashlib.sha256(diff.encode("utf-8", "surrogateescape")).hexdigest(),
        files=tuple(sorted({line[6:] for line in diff.splitlines() if line.startswith(("+++ b/", "--- a/"))})),
        command=command,
        environment=candidate.environment,
        created_utc=now_utc(),
    )
    session.save(experiment)
    (session.experiment_dir(n) / "change.diff").write_bytes(diff.encode("utf-8", "surrogateescape"))
    try:
        return verifying.verify_experiment(session, n, demands)
    except ProgramFailed as failed:
        judged = Verdict(verdict="inconclusive", speedup=None, fidelity=None, starts=0, reasons=(failed.message,))
        verifying.settle(session, experiment, judged, None)
        raise


LEAST_LOOP_S = 60.0  # a diagnosis, a short fidelity run and four starts of even a small program
LEAST_CEILING = 1.04  # the rule calls anything below it "not faster" (stats.REJECT_GAIN)


@dataclass(frozen=True)
class Outcome:
    """What `auto` came to. `combined` is the verdict on all accepted experiments together."""

    experiments: tuple[Experiment, ...]
    combined: Verdict | None
    before: Diagnosis
    after: Diagnosis | None
    spent_s: float
    stopped_because: str


def auto(session: Session, command: Command, demands: Demands, *, budget_s: float) -> Outcome:
    """Diagnose, plan and try one knob at a time until the program is healthy, nothing is left, or the budget is spent."""
    if budget_s < LEAST_LOOP_S:
        raise UsageError(
            f"a budget of {budget_s:.0f} s is too small for the loop", f"give at least {LEAST_LOOP_S:.0f}s; `20m` is twenty minutes"
        )
    began = time.monotonic()

    def left() -> float:
        return budget_s - (time.monotonic() - began)

    session.rest()  # a killed command may have left a candidate in worktree/
    seconds = min(diagnosing.SECONDS, max(15.0, budget_s / 10))
    diagnosis, summary = diagnosing.diagnose(session, command, seconds=seconds, online=demands.online, writable=demands.writable)
    first, after = diagnosis, None
    made: list[Experiment] = []
    # what was interrupted, or left open by noise, deserves another try
    tried = {_essence(diff_of(session, one)) for one in session.experiments() if _settled_here(session, one)}
    longest = verifying.LEAST_BUDGET_S
    while True:
        reason = _done(diagnosis)
        if reason:
            break
        hopeless = _hopeless(diagnosis)
        candidates = [
            c for c in plan(session, diagnosis, summary, command).candidates if _essence(c.diff) not in tried and c.finding not in hopeless
        ]
        allowed = [c for c in candidates if c.risk in {"same", "close"} or c.risk in demands.allowed]
        if not allowed:
            reason = _nothing_left(candidates, made)
            break
        kept_back = _cost_of_combination(session)
        if left() - kept_back < longest:
            reason = (
                f"what is left of the budget of {budget_s:.0f} s is too little for another experiment ({len(allowed)} more could be tried)"
            )
            break
        candidate = allowed[0]
        tried.add(_essence(candidate.diff))
        started = time.monotonic()
        try:
            experiment = try_candidate(
                session, candidate, command, replace(demands, budget_s=max(left() - kept_back, verifying.LEAST_BUDGET_S))
            )
        except UsageError as bad:  # the diff does not apply on top of what was accepted
            session.on_progress(f"{candidate.knob} skipped: {bad.message}", 0, 0)
            continue
        longest = max(longest, 0.5 * (time.monotonic() - started))
        made.append(experiment)
        if experiment.decision == "accepted":
            diagnosis, summary = diagnosing.diagnose(session, command, seconds=seconds, online=demands.online, writable=demands.writable)
            after = diagnosis
    combined = _combine(session, command, demands, max(left(), 4 * verifying.LEAST_BUDGET_S))
    session.rest()
    return Outcome(
        experiments=tuple(made),
        combined=combined,
        before=first,
        after=after,
        spent_s=round(time.monotonic() - began, 1),
        stopped_because=reason,
    )


def _cost_of_combination(session: Session) -> float:
    """Seconds to keep back so that what was accepted can still be verified together, once there is more than one experiment."""
    spent = [experiment.verdict.spent_s for experiment in session.accepted() if experiment.verdict]
    return 1.2 * max(spent, default=0.0)


def _combine(session: Session, command: Command, demands: Demands, budget_s: float) -> Verdict | None:
    try:
        return verifying.verify_combination(session, command, replace(demands, budget_s=budget_s))
    except TrainFlashError as bad:
        return Verdict(verdict="inconclusive", speedup=None, fidelity=None, starts=0, reasons=(bad.message,))


def _hopeless(diagnosis: Diagnosis) -> set[str]:
    """Findings too small to be worth an experiment: even without their whole cost the program could not be shown to be faster."""
    return {finding.kind for finding in diagnosis.findings if finding.ceiling and finding.ceiling.speedup < LEAST_CEILING}


def _settled_here(session: Session, experiment: Experiment) -> bool:
    """Whether it was decided, in this sandbox and not in one that stood here before."""
    return experiment.decision not in {"pending", "inconclusive"} and experiment.created_utc >= session.sandbox.created_utc


def diff_of(session: Session, experiment: Experiment) -> str:
    """The diff of an experiment against the commit it was built on."""
    return sandbox.diff(session.sandbox, experiment.parent_commit, experiment.commit)


def _essence(diff: str) -> tuple[str, ...]:
    """What a diff removes and adds, wherever it stands: an accepted change above it moves its lines."""
    return tuple(line for line in diff.splitlines() if line.startswith(("+", "-")) and not line.startswith(("+++ /", "--- /")))


def _done(diagnosis: Diagnosis) -> str:
    if diagnosis.abstained:
        return f"the diagnosis abstains: {diagnosis.abstained}"
    if diagnosis.findings and diagnosis.findings[0].kind == "compute":
        return "healthy: the time goes into the training itself"
    return ""


def _nothing_left(candidates: list[Candidate], made: list[Experiment]) -> str:
    if candidates:
        names = ", ".join(sorted({f"{c.knob} ({c.risk})" for c in candidates}))
        return f"needs the owner's agreement (--allow): {names}"
    if made:
        return "nothing left to try that these knobs could do"
    return "no knob fits; `trainflash optimize plan` has the briefs for a person or an assistant"
