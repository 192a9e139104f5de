"""Briefs: what a person or an assistant needs to write a patch where no knob does it.

A brief is whole in itself: the finding with its line and evidence, the code around it, what the cost is worth, what must stay the same,
and how the patch will be judged. The patch comes back with `trainflash optimize try --patch FILE`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainflash.errors import UsageError
from trainflash.knobs import patterns
from trainflash.knobs.effects.read_rarely import read_rarely
from trainflash.knobs.project import Project
from trainflash.schema import Brief, Ceiling, Diagnosis, Evidence, Excerpt, Finding, Location, Site

AROUND = 15  # lines before and after, where the function is longer than LONGEST or there is none
LONGEST = 80  # lines of a function that is shown whole
CALLED_BY_OTHERS = frozenset({"forward", "backward", "step", "collate_fn", "training_step", "validation_step"})
MOST_CALLERS = 3  # of a function: one that is called from everywhere is called for many reasons
MOST_SHARE = 0.99  # of a site, for its ceiling: nothing takes no time at all
KEEP = (
    "the same samples in the same order, the same losses, weights, schedule and random numbers; "
    "the same evaluations, checkpoints and log lines at the same steps; no new dependency"
)
JUDGED = (
    "as any experiment: the losses, gradients and batches of both must agree (what changes in kind needs the owner's agreement by name), "
    "then paired runs against the program without the patch must show a gain, in the mean and in slow steps"
)
TRY = "trainflash optimize try --patch FILE --finding {kind} --why TEXT -- CMD"


def brief(project: Project, finding: Finding, tried: tuple[str, ...] = ()) -> Brief:
    """The brief for one finding, with the source around its location where that lies in the project.

    `tried` says what knobs came to.
    """
    code = _code(project, finding.location)
    return Brief(
        finding=finding.kind,
        location=finding.location,
        summary=finding.summary,
        code=code,
        evidence=finding.evidence,
        ceiling=finding.ceiling,
        keep_the_same=KEEP,
        judged_by=JUDGED,
        phase=finding.phase,
        share=finding.share,
        try_with=TRY.format(kind=finding.kind),
        tried=tried,
        read_rarely=_read_rarely(project, finding.location),
        patterns=patterns.fitting(finding.kind, code),
    )


def whole(
    project: Project,
    finding: Finding,
    diagnosis: Diagnosis,
    *,
    tried: tuple[str, ...] = (),
    agreed: tuple[str, ...] = (),
    refused: str = "",
    refused_diff: str = "",
) -> Brief:
    """All that an author needs of one finding: as `brief`, with the code on the call path, and the sites with what they were given.

    `agreed` are the changes that the owner agreed to; `refused` and `refused_diff` are the last answer's, where there was one.
    """
    short = brief(project, finding, tried)
    site = site_of(finding, diagnosis.sites)
    others = (replace(each, path=each.path[-1:], operators=each.operators[:1]) for each in diagnosis.sites if each != site)
    calls = tuple(_calls(project, finding.location, site))
    return replace(
        short,
        sites=(*([site] if site else []), *others),
        calls=calls,
        agreed=agreed,
        refused=refused,
        refused_diff=refused_diff,
        patterns=patterns.fitting(finding.kind, "\n".join((short.code, *(each.code for each in calls)))),
    )


def site_of(finding: Finding, sites: Sequence[Site]) -> Site | None:
    """The largest site at the finding's line, else in its function."""
    at = finding.location
    if at is None:
        return None
    here = [site for site in sites if (site.location.file, site.location.line) == (at.file, at.line)]
    near = [site for site in sites if at.function and (site.location.file, site.location.function) == (at.file, at.function)]
    return next(iter((*here, *near)), None)


def of_site(site: Site) -> Finding:
    """A site that no finding speaks of, as one: what it costs is all that is known of it."""
    share = min(site.share, MOST_SHARE)
    return Finding(
        kind="slow_operator" if site.operators else "host_code",
        phase=site.phase,
        bound_by="device" if site.operators and any(each.device != "cpu" for each in site.operators[0].given) else "host",
        share=site.share,
        severity="medium",
        summary=f"{site.location} takes {site.share:.0%} of the steady step, and no rule says why",
        evidence=(Evidence("share of the step", site.share), Evidence("share of the run", site.run_share)),
        location=site.location,
        ceiling=Ceiling(1 / (1 - share), "bound"),
        knobs=(),
    )


def _calls(project: Project, at: Location | None, site: Site | None) -> Iterator[Excerpt]:
    """The project's other functions on the way: what calls the place by its name, what runs the loop, then what lies below the line."""
    seen = [_code(project, at)]
    below = () if site is None else (*([site.under] if site.under else []), site.location, *site.path)
    for place in (*_callers(project, at), *below):
        code = _code(project, place)
        if code and not any(_plain(code) == _plain(other) for other in seen):
            seen.append(code)
            yield Excerpt(place, code)


def _callers(project: Project, at: Location | None) -> list[Location]:
    """Lines of the program that call the function of a place by its name; none for names that Python itself or torch calls."""
    name = at.function.rpartition(".")[2] if at is not None else ""
    if at is None or not name.isidentifier() or name.startswith("__") or name in CALLED_BY_OTHERS:
        return []
    call = re.compile(rf"(?<![\w])(?<!def ){re.escape(name)}\(")
    found = []
    for path in project.program:
        lines = project.read(path).decode("utf-8", "replace").splitlines()
        found += [Location(path, number) for number, line in enumerate(lines, 1) if call.search(line.partition("#")[0])]
    return found if len(found) <= MOST_CALLERS else []


def _plain(code: str) -> str:
    return "\n".join(line[1:] for line in code.splitlines())  # without the mark of its line


def _read_rarely(project: Project, location: Location | None) -> tuple[str, ...]:
    try:
        return read_rarely(project, location) if location is not None and project.owns(location) and location.file.endswith(".py") else ()
    except UsageError:  # syntax that cannot be parsed
        return ()


def _code(project: Project, location: Location | None) -> str:
    if location is None or not project.owns(location):
        return ""
    try:
        text = project.read(location.file).decode("utf-8", "replace")
    except UsageError:
        return ""
    lines = text.splitlines()
    first, last = _function(text, location) or (max(1, location.line - AROUND), min(len(lines), location.line + AROUND))
    return "\n".join(f"{'>' if n == location.line else ' '}{n:5d}  {lines[n - 1]}" for n in range(first, min(last, len(lines)) + 1))


def _function(text: str, location: Location) -> tuple[int, int] | None:
    """First and last line of the largest function around the line that is not too long to be read whole."""
    if not location.file.endswith(".py"):
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno is not None:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= location.line <= node.end_lineno and node.end_lineno - first < LONGEST:
                found.append((first, node.end_lineno))
    return min(found, default=None)
