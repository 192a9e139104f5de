"""How the terminal reports write: other people's text as it is (never as markup), one style for each meaning, bars of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trainflash.report import figures
from trainflash.report.tune import MARKS, TONES, Tone

STYLES: dict[Tone, str] = {"good": "green", "bad": "red", "unsure": "yellow"}
PHASE_STYLES = {
    "Data": "blue", "H2D": "cyan", "Fwd": "yellow", "Bwd": "red", "Opt": "magenta",
    "Eval": "green", "Ckpt": "bright_magenta", "Log": "bright_red", "Other": "bright_black",
}  # fmt: skip
_EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True)
class Fitted:
    """A renderable that is built when the width is known: `build(width)`."""

    build: Callable[[int], RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.build(options.max_width)


def ink(text: object, style: str = "") -> Text:
    """Text as it is: brackets are no markup, control characters are visible."""
    return Text(figures.visible(str(text)), style=style)


def unbroken(text: object, style: str = "") -> Text:
    """Text that stays on one line however long, so that a command or a path can be copied (print it with `crop=False`)."""
    made = ink(text, style)
    made.no_wrap, made.overflow = True, "ignore"
    return made


def joined(*parts: Text | str) -> Text:
    """Parts on one line; plain strings are ours."""
    return Text.assemble(*parts)


def tone_of(word: str) -> Tone:
    """Good, bad or unsure for a verdict or decision; anything unknown is unsure."""
    return TONES.get(word, "unsure")


def mark(word: str, shown: str | None = None) -> Text:
    """`✓ accepted` in its colour: sign and word say it without colour too."""
    tone = tone_of(word)
    return Text(f"{MARKS[tone]} {word.replace('_', ' ') if shown is None else shown}", style=STYLES[tone])


def bar(share: float, width: int, style: str = "") -> Text:
    """A bar of `share` × `width` cells, to the eighth of a cell; a share that is not 0 shows something."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    full, rest = divmod(eighths, 8)
    return Text("█" * full + (_EIGHTHS[rest] if rest else ""), style=style)


def table(*columns: str, right: Iterable[str] = (), title: str = "") -> Table:
    """An open table; columns named in `right` hold figures."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title or None, title_justify="left", title_style="bold", header_style="bold")
    numeric = set(right)
    for column in columns:
        made.add_column(column, justify="right" if column in numeric else "left", no_wrap=column in numeric, overflow="fold")
    return made


def bullets(lines: Sequence[str], sign: str = "•") -> list[RenderableType]:
    """One indented paragraph a line."""
    return [Padding(joined(f"{sign} ", ink(line)), (0, 0, 0, 2)) for line in lines]


def explained(made: Table) -> Table:
    """The table, with a line that says what its dashes mean if it has any."""
    if any(cell == figures.DASH for column in made.columns for cell in column.cells):
        made.caption, made.caption_justify = figures.DASH_NOTE, "left"
    return made
