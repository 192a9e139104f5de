"""From findings to experiments: the plan, and one candidate made into a commit of the sandbox with a verdict of its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trainflash import knobs, redact, sandbox
from trainflash.errors import ProgramFailed, UsageError
from trainflash.knobs import briefs, planning
from trainflash.knobs.project import Project
from trainflash.schema import (
    KINDS,
    Brief,
    Candidate,
    Command,
    Cost,
    Diagnosis,
    Experiment,
    Location,
    Plan,
    Refusal,
    Summary,
    Verdict,
    as_changed,
    write_document,
)
from trainflash.workflow import choosing, diagnosing, moving, ordering, verifying
from trainflash.workflow.choosing import Choice
from trainflash.workflow.session import Session, now_utc
from trainflash.workflow.verifying import Demands

LARGEST_PATCH = 4_000_000  # bytes; a training program's change is a few lines, and more is a mistaken file
LEAST_CEILING = 1.04  # the rule calls anything below it "not faster" (stats.REJECT_GAIN)
_BINARY = re.compile(rb"^(GIT binary patch|Binary files .* differ)$", re.MULTILINE)
_HUNK = re.compile(rb"^(@@ -\d+(,\d+)? \+\d+(,\d+)? @@|rename from |deleted file mode|new file mode)", re.MULTILINE)
NOTHING_TO_MEND = frozenset({"compute", "hung"})


def plan(
    session: Session,
    diagnosis: Diagnosis,
    summary: Summary,
    command: Command,
    *,
    allowed: frozenset[str] = frozenset(),
    finished: frozenset[int] = frozenset(),
) -> tuple[Plan, Choice]:
    """Write `plan.yaml`: what could be tried on top of what was accepted, in the order in which it will be, and briefs for the rest.

    `finished` are experiments of this search. Candidates that need the owner's agreement stand in the plan too.
    """
    tip = session.tip()
    session.take("candidate", tip)
    checkout = sandbox.project_in(session.sandbox, "candidate")
    command = as_changed(command, session.accepted())
    diagnosis, summary = moving.onto_tip(session, diagnosis, summary)
    counted = verifying.whole_steps(session, command) if summary.stopped else None
    project = planning.seen(checkout, command, summary)
    candidates, refused, written = knobs.plan(diagnosis, summary, checkout, command, whole_steps=counted, project=project)
    order = ordering.Order.of(diagnosis, session.log_entries(), ordering.price(session), allowed)
    candidates = order.sorted(candidates)
    choice = choosing.choose(
        candidates,
        session.experiments(),
        tip=tip,
        allowed=allowed,
        hopeless=hopeless(diagnosis),
        finished=finished,
        diff_of=lambda experiment: diff_of(session, experiment),
    )
    left = [Refusal(each.knob, each.finding, f"{each.value}: {why}") for each, why in choice.left]
    made = Plan(
        run=diagnosis.run,
        created_utc=now_utc(),
        candidates=tuple(each for each in candidates if each in choice.open or each in choice.unagreed),
        refused=order.telling(_beyond(session, (*refused, *left))),
        briefs=tuple(_briefs(project, diagnosis, written, (*refused, *left), choice)),
        costs=_costs(diagnosis),
        abstained=diagnosis.abstained,
        advice=diagnosis.advice if diagnosis.abstained else (),
    )
    write_document(session.plan_path, replace(made, briefs=tuple(replace(one, code=redact.text(one.code)) for one in made.briefs)))
    return made, choice


def _costs(diagnosis: Diagnosis) -> tuple[Cost, ...]:
    """What is worth an experiment, the largest first."""
    worth = [each for each in diagnosis.findings if each.kind not in {*NOTHING_TO_MEND, *hopeless(diagnosis)}]
    worth.sort(key=ordering.saved_share, reverse=True)
    return tuple(Cost(each.kind, each.location, each.share, round(ordering.saved_share(each), 4)) for each in worth)


def _beyond(session: Session, refused: Iterable[Refusal]) -> Iterator[Refusal]:
    """`refused`, where that of a knob which was accepted says so: what it refuses is to do more of it."""
    done = {each.knob: each.n for each in session.accepted()}
    for each in refused:
        known = f"accepted already, as experiment {done[each.knob]}; beyond that: " if each.knob in done else ""
        yield replace(each, reason=f"{known}{each.reason}")


def _briefs(
    project: Project, diagnosis: Diagnosis, written: Iterable[Brief], refused: Sequence[Refusal], choice: Choice
) -> Iterator[Brief]:
    """Those of findings that no knob answers, or none that is likely to pay unasked and was not tried; with what came of the knobs."""
    told = [brief for brief in written if brief.finding not in hopeless(diagnosis)]
    for finding in diagnosis.findings:
        known = {each.finding for each in told}
        if finding.kind not in {*choice.answered, *known, *NOTHING_TO_MEND, *hopeless(diagnosis)}:
            told.append(briefs.brief(project, finding))
    sites = tuple(replace(site, path=site.path[-1:], operators=site.operators[:1]) for site in diagnosis.sites)
    for brief in told:
        tried = tuple(f"{each.knob}: {each.reason}" for each in refused if each.finding == brief.finding)
        yield replace(brief, tried=tried, code=redact.text(brief.code), sites=sites)


def hopeless(diagnosis: Diagnosis) -> frozenset[str]:
    """Findings too small to be worth an experiment: even without their whole cost the program could not be shown to be faster."""
    shares: dict[str, float] = {}
    for finding in diagnosis.findings:
        if finding.ceiling is not None:
            shares[finding.kind] = max(shares.get(finding.kind, 0.0), finding.ceiling.speedup)
    return frozenset(kind for kind, speedup in shares.items() if speedup < LEAST_CEILING)


def propose(session: Session, knob: str, value: str | None, at: Location | None, command: Command) -> Candidate:
    """One knob chosen by hand, as a candidate; a command that was not diagnosed in this sandbox yet is now.

    Raises `UsageError` when the knob does not apply here, with the reason.
    """
    wanted = knobs.get(knob)
    known = diagnosing.latest(session, command) or diagnosing.diagnose(session, command)
    session.take("candidate", session.tip())
    checkout = sandbox.project_in(session.sandbox, "candidate")
    command = as_changed(command, session.accepted())
    diagnosis, summary = moving.onto_tip(session, *known)
    return knobs.propose(wanted, value, at, diagnosis=diagnosis, summary=summary, checkout=checkout, command=command)


def from_patch(patch: Path, why: str = "", finding: str | None = None) -> Candidate:
    """A candidate from a patch file that a person or an assistant wrote; its effect on the training is not presumed.

    Raises `UsageError` for a file that is no text diff, or a finding that there is not. Whether it applies, and stays within the
    project, is seen when it is committed.
    """
    if finding is not None and finding not in KINDS:
        raise UsageError(f"there is no finding {finding!r}", "`trainflash explain` lists them")
    try:
        if patch.stat().st_size > LARGEST_PATCH:
            raise UsageError(f"{patch}: has more than {LARGEST_PATCH // 1_000_000} MB", "name a unified diff of source files")
        data = patch.read_bytes()
    except OSError as bad:
        raise UsageError(f"{patch}: {bad.strerror}", "name a unified diff, such as the output of `git diff`") from None
    if not data.strip():
        raise UsageError(f"{patch}: is empty", "name a unified diff that changes at least one line")
    if b"\0" in data or _BINARY.search(data):
        raise UsageError(f"{patch}: is or holds a binary patch, which nobody can review", "change text files only")
    if not _HUNK.search(data):
        raise UsageError(f"{patch}: is no unified diff", "it needs `--- a/FILE`, `+++ b/FILE` and `@@` lines, as `git diff` writes them")
    text = data.decode("utf-8", "surrogateescape")
    return Candidate(
        knob="patch",
        value=patch.name,
        finding=finding or "host_code",  # type: ignore[arg-type]
        location=None,
        risk="same",
        diff=text,
        why=why or f"patch {patch.name}",
    )


def try_candidate(session: Session, candidate: Candidate, command: Command, demands: Demands) -> Experiment:
    """Commit the candidate on top of what was accepted, judge it, and keep it in `worktree/` only if it was accepted.

    With `take_up` the experiment goes on that was being judged when this very command was killed.
    """
    return measure(session, begin(session, candidate, command, demands).n, demands)


def begin(session: Session, candidate: Candidate, command: Command, demands: Demands) -> Experiment:
    """The experiment of `try_candidate`, not yet judged. Raises `UsageError` when the candidate does not apply."""
    verifying.complete_log(session)  # a kill may have come between a verdict and its entry
    left = _left_unjudged(session, candidate, command) if demands.take_up else None
    return left or make(session, candidate, command, demands)


def _left_unjudged(session: Session, candidate: Candidate, command: Command) -> Experiment | None:
    newest = next(reversed(session.experiments()), None)
    if newest is None or newest.decision != "pending" or newest.parent_commit != session.tip() or newest.command != command:
        return None
    same = all(getattr(newest, name) == getattr(candidate, name) for name in ("knob", "value", "environment", "words"))
    return newest if same and choosing.essence(diff_of(session, newest), newest) == choosing.essence(candidate.diff, candidate) else None


def make(session: Session, candidate: Candidate, command: Command, demands: Demands) -> Experiment:
    """The candidate as a commit on top of what was accepted, not yet judged. Raises `UsageError` when it does not apply there."""
    verifying.require_budget(demands, session, command)
    parent_commit = session.tip()
    accepted = session.accepted()
    wanted = choosing.essence(candidate.diff, candidate)
    kept = next((one for one in accepted if candidate.diff and choosing.essence(diff_of(session, one), one) == wanted), None)
    if kept is not None:
        raise UsageError(f"this change is kept already, as experiment {kept.n}", "ask what to try next: trainflash optimize plan")
    session.take("candidate", parent_commit)
    n = 1 + max((experiment.n for experiment in session.experiments()), default=0)
    said = f"experiment {n}: {candidate.knob} {candidate.value}".rstrip()
    alone = bool(candidate.words or candidate.environment) and not candidate.diff
    commit = sandbox.commit_nothing(session.sandbox, said) if alone else sandbox.commit_diff(session.sandbox, candidate.diff, said)
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
        files=sandbox.changed_files(session.sandbox, parent_commit, commit),
        command=command,
        environment=candidate.environment,
        words=candidate.words,
        created_utc=now_utc(),
        saved_share=candidate.worth.saved_share if candidate.worth else None,
    )
    session.save(experiment)
    (session.experiment_dir(n) / "change.diff").write_bytes(diff.encode("utf-8", "surrogateescape"))
    return experiment


def measure(session: Session, n: int, demands: Demands) -> Experiment:
    """Judge an experiment that was made; raises `ProgramFailed`, with the experiment settled, when the program without it fails."""
    try:
        return verifying.verify_experiment(session, n, demands)
    except ProgramFailed as failed:
        judged = Verdict(verdict="inconclusive", speedup=None, fidelity=None, starts=0, reasons=(failed.message,))
        verifying.settle(session, session.experiment(n), judged, None)
        raise


def diff_of(session: Session, experiment: Experiment) -> str:
    """The diff of an experiment against the commit it was built on."""
    kept = session.experiment_dir(experiment.n) / "change.diff"
    if kept.is_file():
        text = kept.read_bytes()
        if hashlib.sha256(text).hexdigest() == experiment.diff_digest:
            return text.decode("utf-8", "surrogateescape")
    return sandbox.diff(session.sandbox, experiment.parent_commit, experiment.commit)
