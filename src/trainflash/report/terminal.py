"""Terminal reports of the first stages: sandbox, diagnosis, plan, diff, error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from trainflash.report import figures, sites
from trainflash.report.ink import PHASE_STYLES, Fitted, bar, bullets, explained, ink, joined, table
from trainflash.report.tune import phase_names
from trainflash.schema import Diagnosis, Finding, PhaseStat, Sandbox, Site

_WIDE = 96
_NARROW = 60
_OBJECT_NAMES = re.compile(r"^index ([0-9a-f]{7})[0-9a-f]*\.\.([0-9a-f]{7})[0-9a-f]*", re.MULTILINE)


class Failure(Protocol):
    """What an error shows of itself; those of the user's own program have an `output` and a `returncode` too."""

    message: str
    mend: str


def sandbox(box: Sandbox, lines: Sequence[str] = ()) -> RenderableType:
    """Where the sandbox lies, how it is protected, and `lines` of its status."""
    grid = Table.grid(padding=(0, 2))
    protection = f"{box.protection} ({box.protection_reason})" if box.protection_reason else box.protection
    for name, value in (
        ("Sandbox", box.directory), ("Project", box.project), ("Worktree", box.worktree), ("Base", figures.short(box.base_ref, 12)),
        ("Protection", protection), ("Created", figures.clock(box.created_utc)),
    ):  # fmt: skip
        grid.add_row(Text(name, style="bold"), ink(value))
    return Group(grid, *bullets(lines), *(joined(("! ", "yellow"), ink(warning)) for warning in box.warnings))


def diagnosis(found: Diagnosis) -> RenderableType:
    """The bottleneck first, then where the time of a step goes: its phases, its lines; then all findings with what they rest on."""
    parts: list[RenderableType] = [_answer(found), Text(), Fitted(lambda width: _phases(found, width))]
    if found.sites:
        parts.append(Fitted(lambda width: _sites(found.sites, width)))
    parts += [finding(n, each) for n, each in enumerate(found.findings, 1)]
    parts += bullets(found.notes, "Note:")
    return Group(*parts)


def diff(text: str) -> RenderableType:
    """A unified diff in colours; hidden characters are made visible, and object names are cut to what a reader can use.

    Lines are broken for people alone: in a file or a pipe they stay as they are.
    """
    return _Diff(_OBJECT_NAMES.sub(r"index \1..\2", figures.visible(text))) if text.strip() else Text("No difference.")


@dataclass(frozen=True)
class _Diff:
    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if console.is_terminal:
            yield Syntax(self.text, "diff", theme="ansi_dark", background_color="default", word_wrap=True)
        else:
            yield Text(self.text.rstrip("\n"), no_wrap=True, overflow="ignore")


def error(bad: Failure) -> RenderableType:
    """What is wrong and what to do about it; the output of the user's own program, where it failed, comes first."""
    parts: list[RenderableType] = []
    output = getattr(bad, "output", "")
    code = getattr(bad, "returncode", None)
    if output:
        parts += [Rule("last lines of your program's output", style="bright_black"), ink(output.rstrip()), Rule(style="bright_black")]
    parts.append(
        joined(
            ("error: ", "bold red"), ink(bad.message), f" (exit code {code})" if code is not None and "exit code" not in bad.message else ""
        )
    )
    if bad.mend:
        parts.append(joined(("mend:  ", "bold"), ink(bad.mend)))
    return Group(*parts)


def _answer(found: Diagnosis) -> RenderableType:
    measured = f"{figures.count(found.steps, 'step')} in {figures.seconds(found.wall_s)}, {found.timeline} timeline"
    facts = Text(f"{measured}, coverage {figures.percent(found.coverage)}", style="bright_black")
    if found.abstained:
        return Group(joined(("No diagnosis: ", "bold yellow"), ink(found.abstained)), *bullets(found.advice, "Try:"), facts)
    if not found.findings:
        return Group(Text("No bottleneck was found.", style="bold"), facts)
    first = found.findings[0]
    tied = f" (tied with {', '.join(first.tied_with)})" if first.tied_with else ""
    return Group(
        joined((f"Bottleneck: {first.kind}{tied} ", "bold"), ink(f"at {figures.place(first.location)}")), ink(first.summary), facts
    )


def _phases(found: Diagnosis, width: int) -> RenderableType:
    names = phase_names(found)
    if not names:
        return Text("Phases: not measured")
    columns = ["p50 ms", "p95 ms", "p99 ms"] if width >= _WIDE else ["p95 ms"] if width >= _NARROW else []
    made = table("Phase", "Share", "Mean ms", *columns, "", right=("Share", "Mean ms", *columns))
    length = max(8, min(32, width - 26 - 9 * len(columns)))
    for name in names:
        stat = found.phases[name]
        style = PHASE_STYLES.get(name, "")
        cells = [figures.cell(_tail(stat, column)) for column in columns]
        made.add_row(name, figures.percent(stat.share), figures.number(stat.mean_ms), *cells, bar(stat.share, length, style))
    return explained(made)


def _tail(stat: PhaseStat, column: str) -> float | None:
    return {"p50 ms": stat.p50_ms, "p95 ms": stat.p95_ms, "p99 ms": stat.p99_ms}[column]


def _sites(shown: Sequence[Site], width: int) -> RenderableType:
    wide = width >= _WIDE
    columns = (*(("Phase",) if width >= _NARROW else ()), "Line", *(("Hottest below it",) if wide else ()))
    made = table("Share", *columns, right=("Share",), title="Where the time goes")
    for site in shown:
        row: list[RenderableType] = [figures.percent(site.share)]
        if width >= _NARROW:
            row.append(Text(sites.phase(site), style=PHASE_STYLES.get(sites.main_phase(site), "")))
        below = ink("\n".join(sites.below(site)), "bright_black")
        line = ink(sites.place(site))
        made.add_row(*row, *([line, below] if wide else [joined(line, "\n", below) if below.plain else line]))
    if any(site.role == "worker" for site in shown):
        made.caption, made.caption_justify = sites.WORKERS_NOTE, "left"
    return made


def finding(n: int, finding: Finding) -> RenderableType:
    """One finding with what it rests on, where it is, and what could be tried."""
    style = {"high": "red", "medium": "yellow", "low": "cyan"}.get(finding.severity, "green")
    head = joined(
        (f"{n}. {finding.kind}", "bold"),
        (f"  {finding.severity}", style),
        f"  {figures.percent(finding.share)} of the time, {'+'.join(finding.phases) or finding.phase}",
    )
    lines = [f"where     {figures.place(finding.location)}"]
    lines += [f"evidence  {figures.words(item.name)} = {figures.evidence(item)}" for item in finding.evidence]
    if finding.ceiling:
        lines.append(f"ceiling   {figures.times(finding.ceiling.speedup)} if this cost were gone ({finding.ceiling.how})")
    if finding.knobs:
        lines.append(f"knobs     {', '.join(finding.knobs)}")
    return Group(head, Padding(Group(ink(finding.summary), *(ink(line, "bright_black") for line in lines)), (0, 0, 1, 3)))
