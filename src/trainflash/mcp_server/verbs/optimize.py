"""optimize: one change per experiment, each proven or thrown away."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from trainflash.errors import UsageError
from trainflash.mcp_server.verbs.arguments import Allow, Budget, Call, Command, Exact, Project, Sandbox, Verb, seconds
from trainflash.mcp_server.verbs.elsewhere import On, Slurm, in_a_job, place_of


def plan(call: Call, command: Command = None, project: Project = None, sandbox: Sandbox = None) -> dict[str, Any]:
    """What could be tried, best first, from the newest diagnosis; briefs for writing a patch where no knob fits."""
    from trainflash.workflow import answers, diagnosing, optimizing

    typed = call.command(command, project, sandbox)
    found = call.any_session(project, sandbox)
    with found.locked():
        known = diagnosing.latest(found, typed) or diagnosing.diagnose(found, typed)
        made, _ = optimizing.plan(found, *known, typed)
    return answers.plan(made)


def brief(
    call: Call,
    command: Command = None,
    project: Project = None,
    sandbox: Sandbox = None,
    finding: Annotated[str | None, "Of this finding. Default: of the largest cost that no knob is likely to settle."] = None,
    at: Annotated[str | None, "Of this place of the source, FILE:LINE."] = None,
    allow: Allow = None,
) -> dict[str, Any]:
    """The task for writing a patch: the cost with its evidence, the code with its call path, shapes, what must stay the same, patterns that
    fit, what was tried and why it was refused, and how an answer is judged. `markdown` is the same as a page. Answer with optimize_try.
    """
    from trainflash.workflow import answers, briefing, diagnosing, inputs

    settings = call.settings(project, sandbox)
    typed = call.command(command, project, sandbox)
    allowed = inputs.demands(settings, allow=allow).allowed
    found = call.any_session(project, sandbox)
    with found.locked():
        if diagnosing.latest(found, typed) is None:
            diagnosing.diagnose(found, typed)
        made = briefing.asked(found, typed, kind=finding, at=inputs.place(at) if at else None, allowed=allowed)
    return answers.brief(made)


def try_(
    call: Call,
    command: Command = None,
    project: Project = None,
    sandbox: Sandbox = None,
    knob: Annotated[str | None, "A knob of the plan, NAME or NAME=VALUE, such as dataloader_workers=2."] = None,
    at: Annotated[str | None, "Apply the knob at this place of the source, FILE:LINE."] = None,
    patch: Annotated[str | None, "A unified diff to try instead of a knob, its text."] = None,
    why: Annotated[str, "Why the patch should help; goes into the tuning log."] = "",
    finding: Annotated[str | None, "The finding that the patch answers, as its brief names it."] = None,
    budget: Budget = None,
    allow: Allow = None,
    exact: Exact = False,
    on: On = None,
    slurm: Slurm = None,
) -> dict[str, Any]:
    """Make one experiment in the sandbox: commit the change, check that it trains the same, then measure it in paired runs.

    It stays only if the verdict is accept. Several starts of the program, minutes; cancelling keeps what was measured.
    """
    from trainflash.workflow import answers, inputs, optimizing

    if (knob is None) == (patch is None):
        raise UsageError("give a knob or a patch, one of them", "knobs stand in optimize_plan")
    if (finding or why) and patch is None:
        raise UsageError("why and finding say what a patch is for", "leave them out: a knob knows its own")
    settings = call.settings(project, sandbox)
    typed = call.command(command, project, sandbox)
    demands = inputs.demands(settings, budget_s=seconds(budget), allow=allow, exact=exact)
    found = call.any_session(project, sandbox)
    written = _from_text(patch, why, finding) if patch is not None else None
    given = {"--at": at, "--why": why or None, "--finding": finding, "--budget": budget, "--allow": allow, "--exact": exact}
    with _as_file(found, patch) as path:
        verb = ["optimize", "try", *([_no_option(knob)] if knob is not None else [])]
        if (told := in_a_job(call, on, slurm, settings, verb, {**given, "--patch": path}, typed.argv, place_of(found))) is not None:
            return told
    with found.locked():
        name, _, value = str(knob).partition("=")
        candidate = written or optimizing.propose(found, name, value or None, inputs.place(at) if at else None, typed)
        experiment = optimizing.try_candidate(found, candidate, typed, demands)
    return answers.attempt(experiment)


def _no_option(knob: str) -> str:
    """A word that the command line takes for a knob. Raises `UsageError` for one that it would take for an option."""
    if knob.startswith("-"):
        raise UsageError(f"there is no knob {knob}", "knobs stand in optimize_plan")
    return knob


@contextlib.contextmanager
def _as_file(found: Any, patch: str | None) -> Iterator[str | None]:
    """The patch in the sandbox, where the nodes of a cluster see it, as long as it is needed."""
    if patch is None:
        yield None
        return
    with tempfile.NamedTemporaryFile(dir=found.directory, prefix="assistant-", suffix=".diff") as file:
        file.write(patch.encode("utf-8", "surrogatepass"))
        file.flush()
        yield file.name


def _from_text(patch: str, why: str, finding: str | None) -> Any:
    from trainflash.workflow import optimizing

    with tempfile.TemporaryDirectory(prefix="trainflash-") as folder:
        path = Path(folder, "assistant.diff")
        path.write_bytes(patch.encode("utf-8", "surrogatepass"))
        return optimizing.from_patch(path, why, finding)


def auto(
    call: Call,
    command: Command = None,
    project: Project = None,
    sandbox: Sandbox = None,
    budget: Budget = None,
    allow: Allow = None,
    exact: Exact = False,
    on: On = None,
    slurm: Slurm = None,
) -> dict[str, Any]:
    """The whole loop: diagnose, plan, try one knob at a time, diagnose again, until the program is healthy or the budget is spent.

    Takes the budget (20 minutes unless the project says otherwise). Ends with what awaits approval; nothing is written back.
    """
    from trainflash.workflow import answers, inputs, searching, showing

    settings = call.settings(project, sandbox)
    typed = call.command(command, project, sandbox)
    demands = inputs.demands(settings, budget_s=seconds(budget), allow=allow, exact=exact)
    found = call.any_session(project, sandbox)
    given = {"--budget": budget, "--allow": allow, "--exact": exact}
    if (told := in_a_job(call, on, slurm, settings, ["optimize", "auto"], given, typed.argv, place_of(found))) is not None:
        return told
    with found.locked():
        came_to = searching.auto(found, typed, demands, budget_s=demands.budget_s)
        shown = showing.view(found, spent_s=came_to.spent_s, stopped_because=came_to.stopped_because)
        showing.write_report(found, shown)
    return answers.outcome(came_to, found.accepted(), "optimize_auto", shown)


VERBS = (
    Verb("optimize_plan", plan, "Plan what to try", "optimize_plan", long=True),
    Verb("optimize_brief", brief, "The task for a patch", "optimize_brief", long=True),
    Verb("optimize_try", try_, "Try one change", "optimize_try", long=True),
    Verb("optimize_auto", auto, "Run the whole loop", "optimize_auto", long=True),
)
