"""sandbox: a place where experiments can do no harm."""

from __future__ import annotations

from typing import Annotated, Any

from trainflash.mcp_server.verbs.arguments import Call, Project, Sandbox, Verb


def create(call: Call, project: Project = None) -> dict[str, Any]:
    """Make a sandbox of the project: HEAD plus staged, unstaged and untracked files. The original is never written."""
    from trainflash.workflow import answers, session

    return answers.sandbox(session.create(call.roots.project(project), None, on_progress=call.on_progress).sandbox)


def status(call: Call, project: Project = None, sandbox: Sandbox = None) -> dict[str, Any]:
    """What is in the sandbox, which protection holds, the experiments so far, and what changed in the project since."""
    from trainflash.workflow import answers

    found = call.existing(project, sandbox)
    return answers.sandbox_status(found.sandbox, found.status(), found.experiments())


def diff(call: Call, project: Project = None, sandbox: Sandbox = None) -> dict[str, Any]:
    """What the sandbox's worktree changes against the project, as a diff that `git apply` takes."""
    return {"schema": "sandbox_diff.v1", "status": "ok", "diff": call.existing(project, sandbox).diff()}


def discard(
    call: Call, project: Project = None, sandbox: Sandbox = None, everything: Annotated[bool, "Remove log and reports too."] = False
) -> dict[str, Any]:
    """Remove the sandbox's checkouts and its traces in the project's .git; log and reports stay unless `everything`."""
    found = call.existing(project, sandbox)
    with found.locked():
        final = found.undoable()
        found.discard(everything=everything)
    kept = None if everything else str(found.log_path)
    return {"schema": "sandbox_discard.v1", "status": "ok", "sandbox": found.sandbox.directory, "kept": kept, "final": final}


VERBS = (
    Verb("sandbox_create", create, "Make a sandbox", "sandbox_create", long=True),
    Verb("sandbox_status", status, "State of the sandbox", "sandbox_status", reads_only=True),
    Verb("sandbox_diff", diff, "What the sandbox changes", "sandbox_diff", reads_only=True),
    Verb("sandbox_discard", discard, "Remove the sandbox", "sandbox_discard"),
)
