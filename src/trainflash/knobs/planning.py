"""From findings to candidates: each finding in order, its own knobs first, harmless ones before those that change the training."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, get_args

import yaml

from trainflash.errors import UsageError
from trainflash.knobs import briefs, splices
from trainflash.knobs.edits import locating
from trainflash.knobs.knob_files import Knob, by_name, catalogue
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import NoPlace, no_place, same
from trainflash.knobs.reading.python_source import parse
from trainflash.knobs.scene import Scene, Target, available_memory
from trainflash.schema import Brief, Candidate, Command, Diagnosis, Finding, Kind, Location, Refusal, Summary, WordChange
from trainflash.schema.findings import Change

RISKS = get_args(Change)  # from harmless to heavy
UNANSWERED = ("compute", "hung")  # healthy, or not to be mended by a patch


def plan(
    diagnosis: Diagnosis,
    summary: Summary,
    checkout: Path,
    command: Command,
    *,
    memory_bytes: int | None = None,
    whole_steps: int | None = None,
    project: Project | None = None,
) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...], tuple[Brief, ...]]:
    """What could be tried, what was refused and why, and briefs for findings that no knob answers.

    `checkout` is the project's folder in the sandbox; `memory_bytes` is what caches may count on (default: what is free here);
    `whole_steps` are all steps of the program, where another run than this one came to its end. `project` is the same folder, where
    somebody has read it already.
    """
    project = project or seen(checkout, command, summary)
    memory = available_memory() if memory_bytes is None else memory_bytes
    candidates: dict[tuple[Any, ...], Candidate] = {}
    refusals: dict[tuple[str, str], Refusal] = {}
    unanswered: list[Brief] = []
    for finding in diagnosis.findings:
        scene = Scene(project, summary, finding, None, memory, whole_steps)
        made: list[Candidate] = []
        for knob in _answering(finding):
            try:
                _demand(knob, scene)
                made += _candidates(knob, scene, finding.kind, None)
            except UsageError as bad:
                moot = isinstance(bad, NoPlace)
                refusals.setdefault((knob.name, bad.message), Refusal(knob.name, finding.kind, bad.message, moot))
            except Exception as fault:  # one knob that stumbles over a program must not cost the others; its refusal tells of it
                reason = f"TrainFlash itself failed on this program ({type(fault).__name__}: {fault}); the other knobs were tried"
                refusals.setdefault((knob.name, reason), Refusal(knob.name, finding.kind, reason))
        before = {(each.knob, each.value, each.location): key for key, each in candidates.items()}
        for candidate in sorted(made, key=lambda each: RISKS.index(each.risk)):
            twin = before.get((candidate.knob, candidate.value, candidate.location))  # the same for another finding is nothing new
            if twin is None:
                candidates.setdefault((candidate.diff, candidate.words, tuple(candidate.environment.items())), candidate)
            elif candidate.finding == "checkpoint":  # of the two it keeps a run's end
                candidates[twin] = candidate
        if finding.kind not in UNANSWERED and not made:
            unanswered.append(briefs.brief(project, finding))
    return tuple(candidates.values()), tuple(refusals.values()), tuple(unanswered)


def seen(checkout: Path, command: Command, summary: Summary) -> Project:
    """The project as the run of `summary` saw it: the files that it imported, and those whose lines it names."""
    places = (*(line.location for line in summary.lines), *(site.location for site in summary.sites))
    lines = [place.file for place in places if place.file.endswith(".py") and not Path(place.file).is_absolute()]
    return Project(checkout, command, tuple(dict.fromkeys((*summary.imported, *lines))) if summary.imported else (), _loaded(summary))


def _loaded(summary: Summary) -> frozenset[tuple[str, str]] | None:
    known = [loader.classes for loader in summary.loaders]
    return None if not known or None in known else frozenset((path, name.split(".")[-1]) for each in known for path, name in each or ())


def propose(
    knob: Knob,
    value: str | None,
    at: Location | None,
    *,
    diagnosis: Diagnosis,
    summary: Summary,
    checkout: Path,
    command: Command,
    memory_bytes: int | None = None,
) -> Candidate:
    """One candidate of one knob, chosen by hand. Raises `UsageError` with the reason when it does not apply here."""
    finding = next((each for each in diagnosis.findings if each.kind in knob.answers), None)
    memory = available_memory() if memory_bytes is None else memory_bytes
    scene = Scene(seen(checkout, command, summary), summary, finding, at, memory)
    wanted = None if value is None else _parsed(knob, value)
    return _candidates(knob, scene, finding.kind if finding is not None else knob.answers[0], wanted)[0]


def _answering(finding: Finding) -> list[Knob]:
    named = [by_name()[name] for name in finding.knobs if name in by_name()]
    others = [knob for knob in catalogue() if finding.kind in knob.answers and knob not in named]
    return named + sorted(others, key=lambda knob: (RISKS.index(knob.risk), knob.answers.index(finding.kind)))


def _parsed(knob: Knob, text: str) -> Any:
    """What a person typed as the value. Raises `UsageError` where the knob takes no such value."""
    words = [ast.literal_eval(each) for each in knob.values if isinstance(each, str) and each[:1] in "'\""]
    if words:
        if text not in words:
            raise UsageError(f"{knob.name}: {text!r} is no value of this knob", f"it takes {' or '.join(words)}")
        return text
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    switches = all(isinstance(each, bool) for each in knob.values)
    if isinstance(value, bool) is not switches or not isinstance(value, (bool, int)):
        raise UsageError(
            f"{knob.name}: {text!r} is no value of this knob", "it takes true or false" if switches else "it takes a whole number"
        )
    if not switches and value < 0:
        raise UsageError(f"{knob.name}: {text!r} is less than nothing", "it takes a whole number")
    return value


def _candidates(knob: Knob, scene: Scene, kind: Kind, wanted: Any) -> list[Candidate]:
    """The knob's candidates, at least one. Raises `UsageError` with the reason when there is none."""
    _demand(knob, scene)
    reasons = []
    for edit in knob.edits:
        try:
            targets = locating.locate(edit, scene)
        except UsageError as bad:
            reasons.append(bad)
            if getattr(edit, "decides", False) and not isinstance(bad, NoPlace):
                break
            continue
        return [candidate for target in targets for candidate in _at_target(knob, scene, target, kind, wanted)]
    telling = [bad for bad in reasons if not bad.message.startswith("no call of")] or reasons
    refusal = NoPlace if all(isinstance(bad, NoPlace) for bad in reasons) else UsageError
    raise refusal("; ".join(dict.fromkeys(bad.message for bad in telling)), telling[0].mend)


def _demand(knob: Knob, scene: Scene) -> None:
    for condition in knob.requires:
        if not condition.holds(scene.facts):
            raise no_place(condition.otherwise, f"{knob.name} is for runs where that is otherwise")


def _at_target(knob: Knob, scene: Scene, target: Target, kind: Kind, wanted: Any) -> list[Candidate]:
    values = [target.within(scene.facts.evaluate(each, target.current)) for each in knob.values] if wanted is None else [wanted]
    known = [value for value in values if value is not None]
    if not known:
        raise UsageError("what its value depends on was not measured in this run", "give a value: try KNOB=VALUE")
    fresh = [value for number, value in enumerate(known) if not same(value, target.current) and value not in known[:number]]
    if not fresh:
        raise UsageError(f"already {target.current!r}: {target.where}", "try another value, or another place with --at FILE:LINE")
    if wanted is False and _only_on(target):
        raise UsageError(f"{knob.name} cannot be switched off here: {target.where}", "leave `=false` out to try it")
    made, refused = [], []
    for value in fresh:
        try:
            if knob.risk == "cadence" and wanted is None:
                _comes_again(scene, target, value)
            made.append(_candidate(knob, scene, target, kind, value))
        except UsageError as bad:
            refused.append(bad)
    if not made:
        raise refused[0]
    return made


def _comes_again(scene: Scene, target: Target, value: Any) -> None:
    """Raises `UsageError` where the whole run does it so few times that less often is never again."""
    times = scene.facts.happens()
    steps = type(value) is int and type(target.current) is int and value > target.current > 0
    if times is not None and steps and times * target.current < value:
        said = "once" if times == 1 else f"{times} times"
        raise UsageError(f"the whole run does it {said}: with {value} it would not come again", "try a smaller value with KNOB=VALUE")


def _only_on(target: Target) -> bool:
    """Whether the edit is one and the same for True and False, and so only ever makes the change."""
    try:
        return target.write(True) == target.write(False)
    except UsageError:
        return False


def _candidate(knob: Knob, scene: Scene, target: Target, kind: Kind, value: Any) -> Candidate:
    edits = target.write(value)
    words = splices.in_order(each for each in edits if isinstance(each, WordChange))
    changes = splices.contents(scene.project.root, [each for each in edits if isinstance(each, splices.Splice)])
    variables = {each.name: each.text for each in edits if isinstance(each, splices.Variable)}
    if not (changes or words or variables):
        raise UsageError(f"already so: {target.where}", "try another value, or another place with --at FILE:LINE")
    for file, (before, after) in changes.items():
        if before != scene.project.read(file):
            raise UsageError(f"{file}: changed while the edit was made", "plan again")
        if scene.project.linked(file):
            raise UsageError(f"{file}: is a link", "run the file that it leads to, or make this change by hand")
        if file.endswith(".py"):
            parse(file, after)
    risk, because = target.risk or knob.risk, f"; {target.because}" if target.because else ""
    for other in knob.risk_when:
        if all(condition.holds(scene.facts) for condition in other.when):
            risk, because = max(risk, other.risk, key=RISKS.index), f"{because}; {other.because}"
            break
    was = "" if target.label else f" (was {target.current!r})"
    return Candidate(
        knob=knob.name,
        value=target.label or str(value),
        finding=kind,
        location=target.location,
        risk=risk,
        diff=splices.unified(changes),
        why=f"{knob.title}: {target.where}{was}{because}",
        environment=variables,
        words=words,
    )
