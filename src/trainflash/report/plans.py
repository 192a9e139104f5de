"""A plan for a person: each cost with what could be tried for it, then what is not possible and matters, and what is left to a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from trainflash.report import figures
from trainflash.report.ink import bullets, ink, joined
from trainflash.schema import Candidate, Cost, Location, Plan

REFUSALS = 3  # that are shown; `--json` and plan.yaml have all
_RISKS = {
    "same": "trains the same",
    "close": "rounds otherwise, which is checked against the program's own noise",
}
Numbered = tuple[int, Candidate]


def plan(made: Plan) -> RenderableType:
    """Costs with their candidates, numbered in the order in which they are tried; the refusals that matter; what is left to a person."""
    parts: list[RenderableType] = list(_answer(made))
    numbered = list(enumerate(made.candidates, 1))
    shown: set[str] = set()
    for cost in _costs(made):
        own = [each for each in numbered if each[1].finding == cost.finding and cost.finding not in shown]
        parts.append(joined((f"{figures.percent(cost.share)} of the time: {cost.finding}", "bold"), ink(_at(cost.location))))
        parts += [Padding(line, (0, 0, 0, 3)) for line in _candidates(own)]
        if not own and cost.finding not in shown:
            there = [number for number, each in numbered if cost.location is not None and each.location == cost.location]
            said = f"see {there[0]}, at the same place" if there else "no setting and no transform fits"
            parts.append(Padding(ink(said, "bright_black"), (0, 0, 0, 3)))
        shown.add(cost.finding)
        parts.append(Text())
    matter = [each for each in made.refused if not each.moot][:REFUSALS]
    if matter:
        parts.append(Text("Not possible here", style="bold"))
        parts += bullets([f"{each.knob} (for {each.finding}): {each.reason}" for each in matter], "✗")
    if len(made.refused) > len(matter):
        parts.append(ink(f"{figures.count(len(made.refused) - len(matter), 'more refusal')} in plan.yaml and --json", "bright_black"))
    parts += _left(made)
    return Group(*parts)


def _answer(made: Plan) -> Iterator[RenderableType]:
    if made.abstained:
        yield joined(("No diagnosis, and so no plan: ", "bold yellow"), ink(made.abstained))
        yield from bullets(made.advice, "Try:")
    elif made.candidates:
        yield Text("What could be tried, numbered in this order", style="bold")
    else:
        yield Text("Nothing is left to try for these costs." if made.costs else "There is no cost that a change could save.", style="bold")
    yield Text()


def _costs(made: Plan) -> list[Cost]:
    """The costs of the plan, and those of candidates that no cost of it speaks of."""
    known = {cost.finding for cost in made.costs}
    firsts = {each.finding: each for each in reversed(made.candidates) if each.finding not in known}
    beside = [Cost(each.finding, each.location, each.worth.saved_share, each.worth.saved_share) for each in firsts.values() if each.worth]
    return [*made.costs, *beside]


def _candidates(numbered: Sequence[Numbered]) -> Iterator[RenderableType]:
    """One paragraph for each knob and place; values that follow each other stand together."""
    for _, group in groupby(numbered, key=lambda each: (each[1].knob, each[1].location, each[1].risk)):
        same = list(group)
        first = same[0][1]
        numbers = str(same[0][0]) if len(same) == 1 else f"{same[0][0]}–{same[-1][0]}"
        values = ", ".join(each.value for _, each in same)
        yield joined((f"{numbers}. ", "bold"), ink(f"{first.knob} = {values}"), ink(_at(first.location)))
        lines = [_estimate(first), first.why, _RISKS.get(first.risk, f"changes the training: needs --allow {first.risk}")]
        yield Padding(Group(*(ink(line, "bright_black") for line in lines if line)), (0, 0, 0, 3))


def _estimate(candidate: Candidate) -> str:
    worth = candidate.worth
    if worth is None:
        return ""
    bound = figures.times(1 / (1 - worth.saved_share))
    return f"at most {bound}; pays in {worth.chance:.0%} of such cases; a verdict takes about {figures.seconds(worth.cost_s)}"


def _at(location: Location | None) -> str:
    return f" at {figures.place(location)}" if location is not None else ""


def _left(made: Plan) -> Iterator[RenderableType]:
    """What is left to whoever writes a patch, a line for each; the task itself is a command's answer."""
    for number, brief in enumerate(made.briefs):
        if not number:
            yield Text()
            yield Text("For a person or an assistant", style="bold")
        yield ink(f"{brief.summary}: trainflash optimize brief --finding {brief.finding} -- CMD")
