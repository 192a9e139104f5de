"""One verdict with what it is about: for the terminal, and as a comment that a pull request's maintainer reads."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from trainflash.report import figures
from trainflash.report.ink import bullets, ink, joined, mark, table
from trainflash.report.outcomes import verdict
from trainflash.report.pull_request import code, text
from trainflash.report.pull_request import table as markdown_table
from trainflash.report.tune import HOW_TO_AGREE, MARKS, TONES
from trainflash.schema import Carried, Verdict, Verified, training_change
from trainflash.schema.training import FAILED

_TONES = {"carries over": "accept", "does not": "reject", "undecided": "inconclusive"}
COMMENT = "<!-- trainflash verify -->"  # by which a workflow finds the comment that it wrote before


def terminal(found: Verified, carried: Carried | None = None) -> RenderableType:
    """The verdict, and which two states it is about; with a bundle's beside it, whether that carries over."""
    grid = table("", "")
    grid.show_header = False
    for name, state in (("baseline", found.compared.baseline), ("candidate", found.compared.candidate)):
        grid.add_row(Text(name, style="bold"), ink(str(state)))
    if carried is None:
        return Group(verdict(found.verdict), grid)
    told = joined(mark(_TONES[carried.answer], carry_over(found, carried)))
    return Group(told, *bullets(carried.differs), Text(), Text("Here", style="bold"), verdict(found.verdict), grid)


def carry_over(found: Verified, carried: Carried) -> str:
    """Whether the verdict of another machine holds here; each machine's figures by themselves."""
    answer = {
        "carries over": "The verdict carries over",
        "does not": "The verdict does not carry over",
        "undecided": "Undecided: whether the verdict carries over was not shown here",
    }[carried.answer]
    there, here = (_said(judged) for judged in (carried.there, found.verdict))
    return f"{answer}. There: {there} ({machine(carried.machine)}). Here: {here} ({machine(found.machine)})"


def _said(judged: Verdict) -> str:
    speed = f", {figures.interval(judged.speedup)} per {judged.unit}" if judged.speedup else ""
    return f"{figures.words(judged.verdict)}{speed}, {training_change(judged.fidelity, judged.verdict).sentence}"


def markdown(found: Verified, carried: Carried | None = None) -> str:
    """GitHub-flavoured Markdown: the answer, the figures it rests on, what changes in kind, and what was run."""
    judged, compared = found.verdict, found.compared
    training = training_change(judged.fidelity, judged.verdict)
    rows = [
        (f"Speed-up per {judged.unit}", f"{figures.interval(judged.speedup)} over {figures.count(judged.starts, 'paired start')}"),
        ("Whole run", figures.whole_run(judged.whole_run)),
        ("Slow steps", figures.tails(judged.speedup)),
        ("Training", training.sentence),
        ("What changes in kind", ", ".join(training.kinds) or figures.MISSING),
        ("Mean absolute loss delta", figures.loss(judged.fidelity)),
        ("Not seen", ", ".join(judged.fidelity.not_seen) if judged.fidelity else figures.MISSING),
        ("Machine", machine(found.machine)),
    ]
    command, new, old = (code(str(each), in_table=False) for each in (compared.command, compared.candidate, compared.baseline))
    blocks = [
        f"{COMMENT}\n## {MARKS[TONES[judged.verdict]]} {text(headline(judged))}",
        f"Ran {command}, {new} against {old}, in turn and in fresh processes." + (f" {text(compared.note)}." if compared.note else ""),
        text(carry_over(found, carried)) + "." if carried else "",
        markdown_table(("", ""), [row for row in rows if row[1]]),
        "\n".join(f"- {text(reason)}" for reason in judged.reasons),
        f"{HOW_TO_AGREE} the same command with {code(judged.to_agree)}." if judged.to_agree else "",
        "<sub>95 % interval for this command on this machine, all looks at the data included. What was not seen was not compared.</sub>",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def headline(judged: Verdict) -> str:
    """The verdict in one sentence, for somebody who knows nothing of the tool."""
    training = training_change(judged.fidelity, judged.verdict).sentence
    if judged.verdict == "accept" and judged.speedup:
        return f"{figures.times(judged.speedup.mean)} faster, and it {training}"
    if judged.verdict == "needs_agreement":
        return f"Needs agreement: {f'{figures.times(judged.speedup.mean)} faster, and ' if judged.speedup else ''}it {training}"
    fidelity = judged.fidelity
    if judged.verdict == "reject" and fidelity is not None and fidelity.verdict == "changed":
        return "Rejected: it fails" if FAILED in fidelity.changed else f"Rejected: it {training}"
    if judged.verdict == "reject":
        return f"Rejected: {judged.reasons[0].removeprefix('speed: ')}" if judged.reasons else "Rejected"
    return "Inconclusive: there is not enough evidence to say that it is faster and trains the same"


def machine(facts: Mapping[str, str]) -> str:
    """Processor, cores, devices and versions, without the machine's name."""
    devices = [value for name, value in sorted(facts.items()) if name.startswith("device ")]
    cores = f"{facts['cores']} cores" if "cores" in facts else ""
    versions = [f"{name} {facts[name]}" for name in ("python", "torch") if name in facts]
    return ", ".join(part for part in (facts.get("processor", ""), cores, *devices, *versions) if part) or figures.MISSING
