"""Briefs: what a person or an assistant needs to write a patch where no knob fits."""

from __future__ import annotations

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.schema import Brief, Finding, Location

AROUND = 15  # lines before and after
KEEP = (
    "the same samples in the same order, the same losses, weights, schedule and random numbers; "
    "the same evaluations, checkpoints and log lines at the same steps; no new dependency"
)
JUDGED = (
    "paired runs against the unchanged program must show a gain (trainflash optimize try --patch FILE), and the losses, "
    "gradients and batches of both must agree; what changes in kind needs the owner's agreement by name"
)


def brief(project: Project, finding: Finding) -> Brief:
    """The brief for one finding, with the source around its location where that lies in the project."""
    return Brief(
        finding=finding.kind,
        location=finding.location,
        summary=finding.summary,
        code=_code(project, finding.location),
        evidence=finding.evidence,
        ceiling=finding.ceiling,
        keep_the_same=KEEP,
        judged_by=JUDGED,
    )


def _code(project: Project, location: Location | None) -> str:
    if location is None or not project.owns(location):
        return ""
    try:
        lines = project.read(location.file).decode("utf-8", "replace").splitlines()
    except UsageError:
        return ""
    first, last = max(1, location.line - AROUND), min(len(lines), location.line + AROUND)
    return "\n".join(f"{'>' if n == location.line else ' '}{n:5d}  {lines[n - 1]}" for n in range(first, last + 1))
