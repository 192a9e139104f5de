"""The summary of a tuning in Markdown, for a pull request: result, phases, experiments, what was not seen."""

from __future__ import annotations

import re

from trainflash.report import figures, ledger
from trainflash.report.tune import TuneView, fidelity_words, headline, next_step, phase_names, step_ms
from trainflash.schema import Diagnosis, Finding, Verdict


def markdown(view: TuneView) -> str:
    """GitHub-flavoured Markdown without the diff, which the pull request itself shows."""
    head = headline(view)
    blocks = [f"## {text(head.text)}", text(head.detail)]
    if view.combined:
        blocks.append(_verdict(view.combined))
    if view.before or view.after:
        blocks += ["### Where the time of a step goes (ms)", _phases(view.before, view.after)]
    if view.before and view.before.abstained:
        blocks.append(
            "\n".join([f"**No diagnosis:** {text(view.before.abstained)}", "", *(f"- {text(step)}" for step in view.before.advice)])
        )
    if view.before and view.before.findings:
        blocks += ["### What was slow", "\n".join(_finding(finding) for finding in view.before.findings)]
    if view.experiments:
        blocks += ["### Experiments", _experiments(view)]
    if view.ledger:
        blocks += [f"### {ledger.TITLE}", table(ledger.HEAD, ledger.rows(view.ledger), right=len(ledger.HEAD) - 1)]
    blocks.append(text(next_step(view)) + (f"\n\n```sh\n{view.approve_command}\n```" if view.approve_command else ""))
    blocks += [f"- {text(step.said)}" + (f"\n\n```sh\n{step.command}\n```" if step.command else "") for step in view.next_steps]
    ended = f"Stopped: {view.stopped_because}, after {figures.seconds(view.spent_s)}."
    blocks.append(
        f"<sub>{text(ended)} Speed-ups are means over paired fresh starts with 95 % intervals, all looks at the data included.</sub>"
    )
    return "\n\n".join(block for block in blocks if block) + "\n"


def _verdict(judged: Verdict) -> str:
    rows = [
        ("Speed-up", f"{figures.interval(judged.speedup)} over {figures.count(judged.starts, 'start')}"),
        ("Slow steps", figures.tails(judged.speedup)),
        ("Training", fidelity_words(judged.fidelity, judged.verdict)),
        ("Mean absolute loss delta", figures.loss(judged.fidelity)),
    ]
    if judged.fidelity and judged.fidelity.not_seen:
        rows.append(("Not seen", ", ".join(judged.fidelity.not_seen)))
    return table(("", ""), rows)


def _phases(before: Diagnosis | None, after: Diagnosis | None) -> str:
    rows = [(name, *(cell for diagnosis in (before, after) for cell in _phase(diagnosis, name))) for name in phase_names(before, after)]
    rows.append(("Step", figures.number(step_ms(before)), "", figures.number(step_ms(after)), ""))
    return table(("Phase", "before", "p95", "after", "p95"), rows, right=4)


def _phase(diagnosis: Diagnosis | None, name: str) -> tuple[str, str]:
    if diagnosis is None or name not in diagnosis.phases:
        return figures.MISSING, figures.MISSING
    stat = diagnosis.phases[name]
    return figures.number(stat.mean_ms), figures.number(stat.p95_ms)


def _finding(finding: Finding) -> str:
    where = f" at {code(str(finding.location))}" if finding.location else ""
    line = f"- **{finding.kind}**{where}, {figures.percent(finding.share)} of the time: {text(finding.summary)}"
    evidence = ", ".join(f"{figures.words(item.name)} = {figures.evidence(item)}" for item in finding.evidence)
    return f"{line} ({text(evidence)})" if evidence else line


def _experiments(view: TuneView) -> str:
    rows = []
    for experiment in view.experiments:
        judged = experiment.verdict
        fidelity = fidelity_words(judged.fidelity, judged.verdict) if judged else fidelity_words(None)
        knob = f"{experiment.knob} = {experiment.value}" if experiment.value else experiment.knob
        rows.append(
            (str(experiment.n), knob, figures.interval(judged.speedup if judged else None), fidelity, figures.words(experiment.decision))
        )
    return table(("#", "Knob", "Speed-up", "Training", "Decision"), rows)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]], right: int = 0) -> str:
    rule = ["---"] * (len(head) - right) + ["---:"] * right
    lines = [head, tuple(rule), *(tuple(text(cell) for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text(value: str) -> str:
    """Other people's text on one line, without meaning to Markdown or HTML."""
    line = " ".join(figures.visible(value).split())
    return re.sub(r"([\\`*_|<>\[\]#~])", r"\\\1", line).replace("\\#", "#")


def code(value: str, *, in_table: bool = True) -> str:
    """A piece of code as it is; a bar in it would end the cell of a table, and there alone it is escaped."""
    shown = "`" + figures.visible(value).replace("`", "'").replace("\n", " ") + "`"
    return shown.replace("|", "\\|") if in_table else shown
