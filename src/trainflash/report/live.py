"""Terminal report of a running program: the bottleneck or where it hangs, each process, what could not be measured."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from trainflash.report import figures, sites
from trainflash.report.ink import bullets, explained, ink, joined, table
from trainflash.report.terminal import finding
from trainflash.schema import Live, LiveProcess

_LINES = 3
_LEAST_SHARE = 0.05


def live(found: Live) -> RenderableType:
    """The answer first, then what each process did."""
    parts: list[RenderableType] = [_answer(found), Text(), _processes(found)]
    if found.sites:
        parts.append(_sites(found))
    if len(found.taken) > 1 or not found.sites:
        parts += [_lines(process) for process in found.processes if process.lines and process.role in ("training", "worker")]
    parts += [finding(n, each) for n, each in enumerate(found.findings, 1)]
    parts += bullets(found.notes, "Note:")
    parts += [joined((f"! {lack.what}: ", "yellow"), ink(f"{lack.why}; way out: {lack.mend}")) for lack in found.lacks]
    return Group(*parts)


def _answer(found: Live) -> RenderableType:
    facts = Text(f"watched {len(found.processes)} Python processes for {figures.seconds(found.seconds)}", style="bright_black")
    if found.abstained:
        return Group(joined(("No diagnosis: ", "bold yellow"), ink(found.abstained)), facts)
    first = found.findings[0]
    tied = f" (tied with {', '.join(first.tied_with)})" if first.tied_with else ""
    name = "Hung" if first.kind == "hung" else f"Bottleneck: {first.kind}"
    return Group(joined((f"{name}{tied} ", "bold"), ink(f"at {figures.place(first.location)}")), ink(first.summary), facts)


def _processes(found: Live) -> RenderableType:
    made = table("Process", "Role", "Cores", "Threads", "Mostly", "Waits for", right=("Cores", "Threads"))
    for process in found.processes:
        role = f"{process.role} (rank {process.rank})" if process.rank is not None else process.role
        if process.beside is not None:
            role += f", thread {process.beside}"
        doing = next(iter(process.doing.items()), None)
        mostly = f"{doing[0]} {figures.percent(doing[1])}" if doing else figures.DASH
        made.add_row(
            str(process.pid), role, figures.cell(process.cpu), str(process.threads), ink(mostly), ink(process.waits_for or figures.DASH)
        )
    return explained(made)


def _sites(found: Live) -> RenderableType:
    rows: list[RenderableType] = []
    for site in found.sites:
        rows.append(ink(f"{figures.percent(site.share):>8}  {sites.phase(site):<7}  {sites.place(site)}"))
        rows += [ink(f"{'':19}{line}", "bright_black") for line in sites.below(site)]
    if any(site.role == "worker" for site in found.sites):
        rows.append(ink(sites.WORKERS_NOTE, "bright_black"))
    return Padding(Group(ink("Where the time goes", "bold"), *rows), (0, 0, 1, 1))


def _lines(process: LiveProcess) -> RenderableType:
    shown = [line for line in process.lines[:_LINES] if line.share >= _LEAST_SHARE]
    rows = [ink(f"{figures.percent(line.share):>8}  {figures.place(line.location)}  ({line.doing})") for line in shown]
    thread = f", thread {process.beside}" if process.beside else ""
    return Padding(Group(ink(f"{process.role} {process.pid}{thread}", "bold"), *rows), (0, 0, 1, 1)) if rows else Group()
