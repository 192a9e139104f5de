"""Whole briefs: for the largest cost that settings and transforms did not settle, or for the one that is named."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from trainflash import author, redact, report, sandbox
from trainflash.author.rules import SAID
from trainflash.errors import UsageError
from trainflash.knobs import briefs
from trainflash.knobs.project import Project
from trainflash.schema import Brief, Command, Diagnosis, Finding, Location, Plan, Verdict, as_changed, dump_json
from trainflash.workflow import diagnosing, inputs, moving, optimizing, ordering
from trainflash.workflow.session import Session

LEAST_SITE = 0.15  # of the step: a line that no finding speaks of is worth a patch from here on, as a line is a headline in a diagnosis


def targets(session: Session, diagnosis: Diagnosis, command: Command) -> tuple[Finding, ...]:
    """What an author could be asked about, the largest cost first: findings worth an experiment, then large sites that none speaks of."""
    hopeless = optimizing.hopeless(diagnosis)
    known = [each for each in diagnosis.findings if each.kind not in {*optimizing.NOTHING_TO_MEND, *hopeless}]
    project = Project(sandbox.project_in(session.sandbox, "candidate"), command)
    told = {(each.location.file, each.location.line) for each in known if each.location}
    told |= {(each.location.file, each.location.function) for each in known if each.location and each.location.function}
    for site in diagnosis.sites:
        at = site.location
        mine = site.role == "main" and site.share >= LEAST_SITE and project.owns(at)
        if mine and not {(at.file, at.line), (at.file, at.function)} & told:
            known.append(briefs.of_site(site))
    return tuple(sorted(known, key=ordering.saved_share, reverse=True))


def whole(
    session: Session,
    diagnosis: Diagnosis,
    command: Command,
    finding: Finding,
    *,
    plan: Plan | None = None,
    allowed: Iterable[str] = (),
    refused: str = "",
    refused_diff: str = "",
) -> Brief:
    """The whole brief of one finding on what is accepted, secrets taken out."""
    project = Project(sandbox.project_in(session.sandbox, "candidate"), as_changed(command, session.accepted()))
    tried = (f"{each.knob}: {each.reason}" for each in (plan.refused if plan else ()) if each.finding == finding.kind)
    made = briefs.whole(
        project,
        finding,
        diagnosis,
        tried=tuple(dict.fromkeys((*tried, *_patches(session, finding)))),
        agreed=tuple(sorted(allowed)),
        refused=redact.text(refused),
        refused_diff=redact.text(refused_diff),
    )
    calls = tuple(replace(each, code=redact.text(each.code)) for each in made.calls)
    typed = inputs.shown(project.command)
    return replace(
        made,
        code=redact.text(made.code),
        calls=calls,
        tried=tuple(map(redact.text, made.tried)),
        answer=SAID,
        command=typed,
        try_with=made.try_with.replace("-- CMD", f"-- {typed}"),
    )


def _patches(session: Session, finding: Finding) -> Iterator[str]:
    """Patches for this finding that were tried on what is accepted now, and why they were refused."""
    for one in session.experiments():
        if one.knob in {"patch", "author"} and one.finding == finding.kind and one.parent_commit == session.tip() and one.verdict:
            yield f"experiment {one.n}, a patch ({one.why}): {one.decision}: {why_refused(one.verdict)}"


def why_refused(judged: Verdict) -> str:
    """The reasons of a verdict and the evidence of each check that failed: which update, which line, how far off."""
    failed = [check for check in judged.fidelity.checks if check.ok is False] if judged.fidelity else []
    lines = (*judged.reasons, *(f"{check.name}: {check.evidence}" for check in failed))
    return "; ".join(dict.fromkeys(line for line in lines if line)) or judged.verdict


def task(made: Brief) -> author.Task:
    """The brief as an author is given it."""
    places = [made.location, *(each.location for each in made.calls)]
    files = tuple(dict.fromkeys(place.file for place in places if place is not None and not place.file.startswith(("/", ".."))))
    return author.Task(report.brief(made), dump_json(made), files)


def digest(given: author.Task) -> str:
    """SHA-256 of a brief as it was given."""
    return hashlib.sha256(given.markdown.encode("utf-8", "surrogateescape")).hexdigest()


def asked(session: Session, command: Command, *, kind: str | None, at: Location | None, allowed: frozenset[str]) -> Brief:
    """What `optimize brief` answers: the brief of the finding of that kind, or at that place; without either, of the largest open cost.

    Raises `UsageError` for a command that was not diagnosed here, an abstention, a kind that was not found, and a healthy program.
    """
    known = diagnosing.latest(session, command)
    if known is None:
        raise UsageError("this command was not diagnosed in this sandbox yet", "run `trainflash diagnose -- CMD` with it first")
    made, choice = optimizing.plan(session, *known, command, allowed=allowed)
    diagnosis, _ = moving.onto_tip(session, *known)
    if diagnosis.abstained:
        raise UsageError(
            f"the diagnosis abstains: {diagnosis.abstained}", "; ".join(diagnosis.advice) or "see `trainflash diagnose --help`"
        )
    found = targets(session, diagnosis, command)
    if not found:
        raise UsageError("nothing costs enough to be worth a patch", "`trainflash diagnose` says where the time goes")
    here = [each for each in found if (kind is None or each.kind == kind) and (at is None or _at(each, at))]
    if not here and at is not None and (site := next((each for each in diagnosis.sites if _at(each, at)), None)):
        here = [briefs.of_site(site)]
    if not here:
        wanted = " ".join(word for word in (kind or "", f"at {at}" if at else "") if word)
        there = ", ".join(f"{each.kind} at {each.location or 'no line'}" for each in found)
        raise UsageError(f"nothing was found of {wanted}", f"found: {there}")
    unsettled = [each for each in here if each.kind not in choice.answered]
    return whole(session, diagnosis, command, (unsettled or here)[0], plan=made, allowed=allowed)


def _at(found: Finding | object, at: Location) -> bool:
    place = getattr(found, "location", None)
    return place is not None and (place.file, place.line) == (at.file, at.line)
