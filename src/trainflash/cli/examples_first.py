"""Help that teaches: after its first sentence a command's help shows its examples, then everything else."""

from __future__ import annotations

import inspect

import click

_KEPT_AS_IT_IS = "\b\n"  # click's mark of a paragraph that is not wrapped


def arrange(command: click.Command) -> None:
    """Put the examples of `command`, and of those below it, right behind the first sentence."""
    if command.help:
        command.help = arranged(inspect.cleandoc(command.help))
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        arrange(below)


def arranged(text: str) -> str:
    """`text` with its first paragraph, then the unwrapped ones, then the others."""
    first, *rest = text.split("\n\n")
    examples = [part for part in rest if part.startswith(_KEPT_AS_IT_IS)]
    others = [part for part in rest if not part.startswith(_KEPT_AS_IT_IS)]
    return "\n\n".join([first, *examples, *others])
