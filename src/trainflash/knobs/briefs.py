"""Briefs: what a person or an assistant needs to write a patch where no knob does it.

A brief is whole in itself: the finding with its line and evidence, the code around it, what the cost is worth, what must stay the same,
and how the patch will be judged. The patch comes back with `trainflash optimize try --patch FILE`.
"""

from __future__ import annotations

import ast

from trainflash.errors import UsageError
from trainflash.knobs import patterns
from trainflash.knobs.effects.read_rarely import read_rarely
from trainflash.knobs.project import Project
from trainflash.schema import Brief, Finding, Location

AROUND = 15  # lines before and after, where the function is longer than LONGEST or there is none
LONGEST = 80  # lines of a function that is shown whole
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
