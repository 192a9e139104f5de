"""log, report, explain, doctor: what was tried, what it means, and what works here."""

from __future__ import annotations

from typing import Annotated, Any

from trainflash.mcp_server.verbs.arguments import Call, Project, Sandbox, Verb


def log(call: Call, project: Project = None, sandbox: Sandbox = None) -> dict[str, Any]:
    """The tuning log: every diagnosis and experiment, with why, before, after and verdict."""
    from trainflash.workflow import answers

    found = call.existing(project, sandbox)
    return answers.log(found.log_entries(), str(found.log_path))


def note(
    call: Call,
    text: Annotated[str, "What to remember, such as why a change did not help."],
    project: Project = None,
    sandbox: Sandbox = None,
    experiment: Annotated[int | None, "The experiment that the note is about.", (1, None)] = None,
) -> dict[str, Any]:
    """Add a note to the tuning log."""
    found = call.existing(project, sandbox)
    found.note(text, experiment)
    return {"schema": "log_note.v1", "status": "ok", "path": str(found.log_path)}


def report(call: Call, project: Project = None, sandbox: Sandbox = None) -> dict[str, Any]:
    """Write report.html of the sandbox again, without running anything, and say where it lies."""
    from trainflash.workflow import showing

    found = call.existing(project, sandbox)
    showing.write_report(found, showing.view(found))
    return {"schema": "report.v1", "status": "ok", "report": str(found.report_path), "log": str(found.log_path)}


def explain(
    call: Call, name: Annotated[str | None, "A finding, a knob or a pattern; without it all of them, one line each."] = None
) -> dict[str, Any]:
    """What a finding means, what a knob does and may change, or what a pattern rewrites: before, after and its traps."""
    from trainflash.workflow import explaining

    return explaining.answer(explaining.explain(name)) if name else explaining.everything()


def doctor(call: Call, project: Project = None) -> dict[str, Any]:
    """What works on this machine, and the mend for what does not; nothing of the project is changed."""
    from trainflash.workflow import answers
    from trainflash.workflow import doctor as examining

    return answers.health(examining.examine(call.roots.project(project), call.on_progress))


VERBS = (
    Verb("log", log, "Show the tuning log", "log", reads_only=True),
    Verb("log_note", note, "Add a note to the log", "log_note"),
    Verb("report", report, "Write the report again", "report", long=True),
    Verb("explain", explain, "Explain a finding, a knob or a pattern", "explain", reads_only=True),
    Verb("doctor", doctor, "What works on this machine", "doctor", long=True, reads_only=True),
)
