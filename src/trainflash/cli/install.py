"""`trainflash install`: rules and skills for an assistant, into a project."""

from __future__ import annotations

from pathlib import Path

import click

from trainflash.cli.options import PathName, json_option
from trainflash.cli.output import Output

AGENTS = ("claude", "cursor", "copilot", "codex", "gemini")


@click.command(short_help="Rules and skills for coding assistants, into a project.")
@click.argument("project", type=PathName())
@click.option(
    "--agent", "agents", multiple=True, type=click.Choice([*AGENTS, "all"]), help="For which assistant; may be repeated. Default: all."
)
@click.option("--dry-run", is_flag=True, help="Say what would be written; write nothing.")
@click.option("--uninstall", is_flag=True, help="Remove exactly what was installed.")
@json_option
def install(project: Path, agents: tuple[str, ...], dry_run: bool, uninstall: bool, as_json: bool) -> None:
    """Put rules, skills, the MCP server and permissions to ask first into PROJECT, never clobbering what is there.

    \b
    trainflash install . --agent claude --dry-run     what would be written
    trainflash install . --agent claude               write it; again after an upgrade of trainflash
    trainflash install . --uninstall                  take out exactly what was installed

    Your own text in CLAUDE.md, AGENTS.md and settings files stays byte for byte. A settings file with comments or errors in it is
    left alone, and the answer says so.
    """
    from trainflash import install as installer

    chosen = AGENTS if not agents or "all" in agents else agents
    done = installer.uninstall(project, dry_run=dry_run) if uninstall else installer.install(project, chosen, dry_run=dry_run)
    lines = [f"{change.action}: {change.path}" + (f" ({change.reason})" if change.reason else "") for change in done.changes]
    Output(as_json).answer(
        {
            "schema": "install.v1",
            "status": "ok",
            "dry_run": dry_run,
            "changes": [{"action": change.action, "path": change.path, "reason": change.reason} for change in done.changes],
        },
        *(lines or ["nothing to do"]),
    )
