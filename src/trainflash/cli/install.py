"""`trainflash install`: rules and skills for an assistant, into a project."""

from __future__ import annotations

from pathlib import Path

import click

from trainflash.cli.options import json_option
from trainflash.cli.output import Output

AGENTS = ("claude", "cursor", "copilot", "codex", "gemini")


@click.command(short_help="Rules and skills for coding assistants, into a project.")
@click.argument("project", type=click.Path(path_type=Path))
@click.option(
    "--agent", "agents", multiple=True, type=click.Choice([*AGENTS, "all"]), help="For which assistant; may be repeated. Default: all."
)
@click.option("--dry-run", is_flag=True, help="Say what would be written; write nothing.")
@click.option("--uninstall", is_flag=True, help="Remove exactly what was installed.")
@json_option
def install(project: Path, agents: tuple[str, ...], dry_run: bool, uninstall: bool, as_json: bool) -> None:
    """Put rules and skills for coding assistants into PROJECT, never clobbering what is there.

    \b
    trainflash install . --agent claude --dry-run
    """
    from trainflash import install as installer

    chosen = AGENTS if not agents or "all" in agents else agents
    done = installer.uninstall(project, dry_run=dry_run) if uninstall else installer.install(project, chosen, dry_run=dry_run)
    lines = [f"{change.action}: {change.path}" for change in done.changes] or ["nothing to do"]
    Output(as_json).answer(
        {
            "schema": "install.v1",
            "status": "ok",
            "dry_run": dry_run,
            "changes": [{"action": change.action, "path": change.path} for change in done.changes],
        },
        *lines,
    )
