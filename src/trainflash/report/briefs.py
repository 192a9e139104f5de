"""A whole brief in Markdown: the task as an assistant reads it."""

from __future__ import annotations

from collections.abc import Iterator

from trainflash.report import figures, sites
from trainflash.schema import Brief, Operand, Quoted, Site, SiteOperator

_AGREED = "The owner agreed to these changes in kind: {}."
_NOT_AGREED = "The owner agreed to no change in kind: not to another order, precision, batch size, schedule, cadence or evaluation."
_ROUNDING = "numerics"  # as an agreement: what rounds otherwise within the program's own noise
_ROUNDED = "Other rounding, within the program's own noise, is accepted."
_EXACT = "Other rounding is refused: all must stay equal to the last bit."


def brief(told: Brief) -> str:
    """The brief as a page of Markdown, with a line break at its end."""
    return "\n\n".join(part for part in _parts(told) if part) + "\n"


def _parts(told: Brief) -> Iterator[str]:
    yield f"# Make this training faster: {told.finding} at {figures.place(told.location)}"
    yield (
        "Change the program so that this cost goes and it still trains the same. Make the smallest change that does it. Nobody can answer "
        "questions: where something is unclear, take the reading that keeps the training as it is."
    )
    if told.refused:
        yield f"## Your last answer was refused\n\n{told.refused}"
        yield _fenced(told.refused_diff, "diff")
        yield "It was taken back: the source is as it was before it. Answer again, otherwise."
    yield f"It is run by `{told.command}`." if told.command else ""
    yield f"## What costs time\n\n{told.summary}"
    yield "\n".join(_figures(told))
    if told.sites:
        yield "### The largest cost sites\n\n" + "\n".join(line for site in told.sites for line in _site(site))
    if told.code:
        yield f"## The code\n\n`{told.location}`, the line marked by `>`:\n\n{_fenced(told.code)}"
    for each in told.calls:
        yield f"On the call path, `{each.location}`:\n\n{_fenced(each.code)}"
    if told.read_rarely:
        yield _listed("What is read rarely", told.read_rarely)
    yield f"## What must stay the same\n\n{_sentence(told.keep_the_same)}"
    agreed = [name for name in told.agreed if name != _ROUNDING]
    rounded = _ROUNDED if _ROUNDING in told.agreed else _EXACT
    yield f"{_AGREED.format(', '.join(agreed)) if agreed else _NOT_AGREED} {rounded}"
    for each in told.patterns:
        yield _pattern(each)
    if told.tried:
        yield _listed("What was tried, and what came of it", told.tried)
    yield f"## How it is judged\n\n{_sentence(told.judged_by)}"
    if told.answer:
        yield f"An answer is {told.answer}."
    yield f"By hand: `{told.try_with}`" if told.try_with else ""


def _figures(told: Brief) -> Iterator[str]:
    if told.share is not None:
        yield f"- {figures.percent(told.share)} of the steady wall time{f', phase {told.phase}' if told.phase else ''}"
    for item in told.evidence:
        yield f"- {figures.words(item.name)}: {figures.evidence(item)}"
    if told.ceiling:
        how = "a replay without it" if told.ceiling.how == "measured" else "its share, an upper bound"
        yield f"- at most {figures.times(told.ceiling.speedup)} faster if all of it were gone ({how})"


def _site(site: Site) -> Iterator[str]:
    manner = f", {sites.manner(site)}" if site.called_back else ""
    yield f"- {figures.percent(site.share)}{sites.of_the_workers(site)}, {sites.phase(site)}: `{sites.place(site)}`{manner}, {_often(site)}"
    if site.callers:
        yield f"  - called by {', '.join(f'`{sites.function(each.function)}` ({each})' for each in site.callers)}"
    if site.path:
        yield f"  - calls {' → '.join(f'`{sites.function(each.function)}` ({each})' for each in site.path)}"
    if site.early_ms is not None and site.late_ms is not None:
        yield f"  - {figures.ms(site.early_ms)} a step in the first third of the steps, {figures.ms(site.late_ms)} in the last"
    for operator in site.operators:
        yield f"  - {_operator(operator)}"


def _often(site: Site) -> str:
    return {"step": "in each step", "pass": "once a pass over the data"}.get(site.often, site.often)


def _operator(made: SiteOperator) -> str:
    backward = f" and {figures.ms(made.backward_ms)} backward" if made.backward_ms else ""
    given = f" of {', '.join(map(_operand, made.given))}" if made.given else ""
    out = f" to {', '.join(map(_operand, made.made))}" if made.made else ""
    floor = f"; this machine needs {figures.ms(made.floor_ms)} for it at least" if made.floor_ms is not None else ""
    named = (f"{f'argument {name}' if name.isdigit() else name}={value}" for name, value in made.arguments)
    words = f"; {', '.join(named)}" if made.arguments else ""
    return f"`{made.name}`{given}{out}: {figures.number(made.calls)} calls a step, {figures.ms(made.ms)}{backward}{floor}{words}"


def _operand(given: Operand) -> str:
    kind = "" if given.layout == "contiguous" else f" {given.layout}"
    return f"{given.dtype}{list(given.shape)}{kind} on {given.device}{' with gradient' if given.requires_grad else ''}"


def _pattern(told: Quoted) -> str:
    traps = "\n".join(f"- {trap}" for trap in told.traps)
    return (
        f"## A pattern that may fit: {told.title}\n\n{told.symptom}\n\nBefore:\n\n{_fenced(told.before, 'python')}\n\n"
        f"After:\n\n{_fenced(told.after, 'python')}\n\nIt keeps: {told.keeps}\n\nTraps:\n\n{traps}"
    )


def _listed(title: str, lines: tuple[str, ...]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines)


def _fenced(code: str, language: str = "") -> str:
    """Code in a fence that none in it can end."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code.rstrip()}\n{fence}" if code.strip() else ""


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
