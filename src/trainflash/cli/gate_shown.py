"""How results of `trainflash gate` leave: exit codes, GitHub's annotations, files."""

from __future__ import annotations

from pathlib import Path

import click

from trainflash.cli.output import Output
from trainflash.errors import Inconclusive, Rejected

EXIT = {"fail": Rejected.exit_code, "inconclusive": Inconclusive.exit_code}


def annotate(output: Output, lines: list[str]) -> None:
    """GitHub reads them from both streams; with --json stdout is the document's alone."""
    for line in lines:
        click.echo(line, err=output.as_json)


def write(path: Path, text: str, *, add: bool = True) -> None:
    """Add to the file, or replace it; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if add else "w", encoding="utf-8") as file:
        file.write(text)
