"""What a finished tuning shows: one view for the terminal, the page and the pull request, and the sentences they share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trainflash.report import figures
from trainflash.schema import PHASES, Diagnosis, Experiment, Fidelity, Verdict, training_change
from trainflash.schema.authors import Earned

Tone = Literal["good", "bad", "unsure"]

HOW_TO_AGREE = "To agree to that, and to nothing else:"
TONES: dict[str, Tone] = {
    "accept": "good", "accepted": "good", "same": "good", "close": "good",
    "reject": "bad", "rejected": "bad", "changed": "bad", "failed": "bad",
    "approved": "good", "refused": "bad",
    "inconclusive": "unsure", "pending": "unsure", "undone": "unsure", "needs_agreement": "unsure",
}  # fmt: skip
MARKS: dict[Tone, str] = {"good": "✓", "bad": "✗", "unsure": "?"}


@dataclass(frozen=True)
class NextStep:
    """What the owner could do, in a sentence, and the command that does it; "": there is none."""

    said: str
    command: str


@dataclass(frozen=True)
class TuneView:
    """Everything that the reports of one tuning show; texts are expected redacted. `diff` is that of all accepted experiments together."""

    before: Diagnosis | None
    after: Diagnosis | None
    experiments: tuple[Experiment, ...]
    combined: Verdict | None
    diff: str
    report_path: Path | str
    log_path: Path | str
    approve_command: str | None
    stopped_because: str
    spent_s: float
    project: str = ""
    ledger: tuple[Earned, ...] = ()
    run_as: str = ""  # the command that what was accepted makes of the owner's
    next_steps: tuple[NextStep, ...] = ()  # where nothing awaits approval


@dataclass(frozen=True)
class Headline:
    """The result in one sentence, what it means, and how good that is."""

    text: str
    detail: str
    tone: Tone


def headline(view: TuneView) -> Headline:
    """The one sentence that stands at the top of every report."""
    verdict = view.combined
    if verdict is None:
        bottleneck = view.before.findings[0] if view.before and view.before.findings else None
        if bottleneck and bottleneck.kind == "compute":
            return Headline("This program is healthy", bottleneck.summary, "good")
        return Headline("Nothing to write back", view.stopped_because, "unsure")
    reasons = "; ".join(verdict.reasons)
    if verdict.verdict == "accept" and verdict.speedup:
        fidelity = fidelity_words(verdict.fidelity, "accept")
        return Headline(f"{figures.times(verdict.speedup.mean)} faster, and it {fidelity}", reasons, "good")
    if verdict.verdict == "reject":
        return Headline("Rejected: the program stays as it is", reasons, "bad")
    if verdict.verdict == "needs_agreement":
        return Headline(f"Needs agreement: {', '.join(verdict.needs)}", reasons, "unsure")
    return Headline("Inconclusive: not enough evidence to change the program", reasons, "unsure")


def fidelity_words(fidelity: Fidelity | None, verdict: str = "") -> str:
    """`trains the same`, `trains differently: other order`, …; where the `verdict` rests on an agreement, that is said."""
    return training_change(fidelity, verdict).sentence


def next_step(view: TuneView) -> str:
    """What the owner does now, in one sentence."""
    if view.approve_command:
        also = f" From then on start the training as `{view.run_as}`." if view.run_as else ""
        return f"Nothing in your project has changed yet.{also} Read the diff; to write it back, run:"
    if view.run_as:
        return f"No file of your project needs to change. Start the training as `{view.run_as}`."
    if view.combined is not None and view.combined.verdict == "inconclusive":
        more = " What could be done next:" if view.next_steps else ""
        return f"Nothing in your project has changed. Run it again on a quieter machine or with a larger budget.{more}"
    if view.combined is not None and view.combined.verdict == "reject":
        more = " What could be done next:" if view.next_steps else ""
        return f"Nothing in your project has changed. The reasons stand with each experiment.{more}"
    if view.next_steps:
        return "Nothing in your project has changed. What could be done next:"
    return "Nothing in your project has changed, and nothing awaits your approval."


def phase_names(*diagnoses: Diagnosis | None) -> tuple[str, ...]:
    """Phases that some diagnosis knows, in the field's order; `Other` always stands last where it was measured."""
    known = {name for diagnosis in diagnoses if diagnosis for name in diagnosis.phases}
    return (*(name for name in PHASES if name in known), *sorted(known - set(PHASES)))


def step_ms(diagnosis: Diagnosis | None) -> float | None:
    """Mean milliseconds of a whole step: what its phases add up to (they are exclusive and leave nothing out)."""
    return sum(stat.mean_ms for stat in diagnosis.phases.values()) if diagnosis and diagnosis.phases else None
