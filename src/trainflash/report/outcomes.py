"""Terminal reports of the last stages: fidelity, verdict, experiments, and the end of a tuning."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from trainflash.report import figures, ledger
from trainflash.report.ink import PHASE_STYLES, STYLES, Fitted, bullets, explained, ink, joined, mark, table, unbroken
from trainflash.report.terminal import diff
from trainflash.report.tune import HOW_TO_AGREE, MARKS, TuneView, fidelity_words, headline, next_step, phase_names, step_ms
from trainflash.schema import Diagnosis, Experiment, Fidelity, Verdict
from trainflash.schema.authors import Earned

_WIDE = 90


def fidelity(found: Fidelity) -> RenderableType:
    """Does it still train the same: the answer, each check with its evidence, and what was not seen."""
    parts: list[RenderableType] = [
        joined(mark(found.verdict, fidelity_words(found)), f"; mean absolute loss delta {figures.loss(found)}"),
    ]
    made = table("", "Check", "Evidence")
    for check in found.checks:
        sign = {True: mark("same", ""), False: mark("changed", ""), None: mark("inconclusive", "")}[check.ok]
        evidence = check.evidence if check.ok is not None else f"{figures.MISSING}: {check.evidence}"
        made.add_row(sign, ink(figures.words(check.name)), ink(evidence))
    if found.checks:
        parts.append(made)
    if found.seen:
        parts.append(ink(f"seen: {', '.join(found.seen)}"))
    if found.not_seen:
        parts.append(ink(f"not seen in these {figures.count(found.updates, 'update')}: {', '.join(found.not_seen)}", "yellow"))
    if found.not_judged:
        parts.append(ink(f"not judged: {', '.join(found.not_judged)}", "yellow"))
    parts.extend(ink(note) for note in found.notes)
    return Group(*parts, *bullets(found.reasons))


def verdict(judged: Verdict, agree: str = "") -> RenderableType:
    """Accept, reject, inconclusive or in need of an agreement, with the figures it rests on, the reasons, and the command that agrees."""
    rows = [
        (f"speed-up per {judged.unit}", f"{figures.interval(judged.speedup)}, {figures.count(judged.starts, 'start')}"),
        ("whole run", figures.whole_run(judged.whole_run)),
        ("slow steps", figures.tails(judged.speedup)),
        ("memory", figures.memory(judged.resources)),
        ("CPU time", figures.cpu(judged.resources)),
        ("fidelity", fidelity_words(judged.fidelity, judged.verdict)),
        ("loss delta", figures.loss(judged.fidelity)),
        ("protection", judged.protection or figures.MISSING),
        ("spent", figures.seconds(judged.spent_s)),
    ]
    grid = table("", "")
    grid.show_header = False
    for name, value in rows:
        grid.add_row(Text(name, style="bold"), ink(value))
    needed = f": {', '.join(judged.needs)}" if judged.verdict == "needs_agreement" else ""
    shown = mark(judged.verdict, judged.verdict.replace("_", " ").upper() + needed)
    agree = agree or (f"the same command with {judged.to_agree}" if judged.to_agree else "")
    how = [ink(HOW_TO_AGREE), unbroken(f"    {agree}", "bold")] if agree else []
    return Group(shown, *bullets(judged.reasons), grid, *how)


def experiments(tried: Sequence[Experiment]) -> RenderableType:
    """One row an experiment, in the order tried."""
    if not tried:
        return Text("Nothing was tried.")
    return Fitted(lambda width: _experiments(tried, width))


def tune_result(view: TuneView) -> RenderableType:
    """The end of a tuning: result, phases before and after, experiments, the diff, and the one command to approve."""
    head = headline(view)
    style = STYLES[head.tone]
    title = Panel(Group(Text(f"{MARKS[head.tone]} {head.text}", style=f"bold {style}"), ink(head.detail)), border_style=style, expand=False)
    parts: list[RenderableType] = [title]
    if view.combined:
        parts.append(_facts(view.combined))
    if view.before or view.after:
        parts.append(Fitted(lambda width: _before_and_after(view.before, view.after, width)))
    if view.experiments:
        parts.append(experiments(view.experiments))
    if view.ledger:
        parts.append(_ledger(view.ledger))
    if view.diff.strip():
        parts += [Text("The change", style="bold"), diff(view.diff), Text()]
    if view.stopped_because:
        parts.append(ink(f"Stopped: {view.stopped_because}, after {figures.seconds(view.spent_s)}", "bright_black"))
    parts += [
        unbroken(f"Report:  {view.report_path}", "bright_black"),
        unbroken(f"Log:     {view.log_path}", "bright_black"),
        Text(),
        ink(next_step(view)),
    ]
    if view.approve_command:
        parts.append(unbroken(f"    {view.approve_command}", "bold"))
    for step in view.next_steps:
        parts += [*bullets([step.said]), *([unbroken(f"    {step.command}", "bold")] if step.command else [])]
    return Group(*parts)


def _ledger(lines: Sequence[Earned]) -> RenderableType:
    made = table(*ledger.HEAD, right=ledger.HEAD[1:], title=ledger.TITLE)
    made.columns[0].no_wrap, made.columns[-1].no_wrap = True, False  # where it is narrow, the last heading breaks
    for row in ledger.rows(lines):
        made.add_row(*row)
    return explained(made)


def _facts(judged: Verdict) -> RenderableType:
    lines = [f"Speed-up    {figures.interval(judged.speedup)}, 95 % interval, {figures.count(judged.starts, 'start')}"]
    lines.append(f"Slow steps  {figures.tails(judged.speedup)}")
    lines.append(f"Loss delta  {figures.loss(judged.fidelity)}")
    return Group(*(ink(line) for line in lines), Text())


def _before_and_after(before: Diagnosis | None, after: Diagnosis | None, width: int) -> RenderableType:
    wide = width >= _WIDE
    figures_wanted = ("Before", "After", *(("p95 before", "p95 after") if wide else ()))
    made = table(
        "Phase",
        *figures_wanted,
        right=figures_wanted,
        title="Milliseconds a step",
    )
    for name in phase_names(before, after):
        row = [figures.cell(_stat(diagnosis, name, "mean_ms")) for diagnosis in (before, after)]
        if wide:
            row += [figures.cell(_stat(diagnosis, name, "p95_ms")) for diagnosis in (before, after)]
        made.add_row(Text(name, style=PHASE_STYLES.get(name, "")), *row)
    made.add_section()
    made.add_row(Text("Step", style="bold"), figures.cell(step_ms(before)), figures.cell(step_ms(after)))
    return Group(explained(made), ink("Each column is one run; the speed-up comes from paired runs.", "bright_black"), Text())


def _stat(diagnosis: Diagnosis | None, name: str, field: str) -> float | None:
    return getattr(diagnosis.phases[name], field) if diagnosis and name in diagnosis.phases else None


def _named(experiment: Experiment) -> Text:
    """The knob and its value, and beneath it why it was not accepted."""
    name = ink(f"{experiment.knob} = {experiment.value}" if experiment.value else experiment.knob)
    if experiment.decision == "accepted" or not experiment.verdict or not experiment.verdict.reasons:
        return name
    return joined(name, "\n", ink(experiment.verdict.reasons[0], "bright_black"))


def _experiments(tried: Sequence[Experiment], width: int) -> RenderableType:
    wide = width >= _WIDE
    made = table("#", "Knob", "Speed-up", *(("Fidelity",) if wide else ()), "Decision", right=("#",), title="Experiments")
    for experiment in tried:
        judged = experiment.verdict
        row: list[RenderableType] = [
            str(experiment.n),
            _named(experiment),
        ]
        row.append(figures.interval(judged.speedup if judged else None))
        if wide:
            row.append(fidelity_words(judged.fidelity, judged.verdict) if judged else fidelity_words(None))
        made.add_row(*row, mark(experiment.decision))
    return made
