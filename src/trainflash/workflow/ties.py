"""Does each half of the steps name the same cause? Where they differ, so would two runs: then the causes tie, and it is said."""

from __future__ import annotations

from dataclasses import replace

from trainflash.diagnosis import diagnose
from trainflash.schema import Diagnosis, Finding, Peaks
from trainflash.summary import Steady, halves, steady_part, summarize
from trainflash.trace import Trace

LEAST_STEPS = 40  # own: twenty in each half, which a rule needs ten of
ALIKE = 0.10  # own: of the time; causes further apart change places only where one half of the run is another program
OF_THE_WHOLE_RUN = ("growth", "startup", "compute")  # what one half cannot show


def with_ties(found: Diagnosis, recorded: Trace, warmup: int | None, peaks: Peaks | None) -> Diagnosis:
    """`found`, with its first finding tied with what leads in one half of the steady steps, and a note that says so."""
    part = steady_part(recorded.ranks[0], warmup)
    if found.abstained or not found.findings or found.findings[0].kind in OF_THE_WHOLE_RUN or len(part.kept) < LEAST_STEPS:
        return found
    first = found.findings[0]
    leaders = [_leader(recorded, half, peaks) for half in halves(recorded.ranks[0], part)]
    others = {kind for kind in leaders if kind is not None and kind != first.kind}
    rivals = [each for each in found.findings[1:] if each.kind in others and each.share >= first.share - ALIKE]
    if not rivals:
        return found
    kinds = tuple(dict.fromkeys((*first.tied_with, *(each.kind for each in rivals))))
    others_named = " and ".join(map(_named, rivals))
    note = f"{_named(first)} leads over all steps, {others_named} in one half of them: another run may name the other first"
    findings = tuple(
        replace(each, tied_with=tuple(dict.fromkeys((*each.tied_with, first.kind)))) if each in rivals else each
        for each in found.findings[1:]
    )
    return replace(found, findings=(replace(first, tied_with=kinds), *findings), notes=(note, *found.notes))


def _leader(recorded: Trace, half: Steady, peaks: Peaks | None) -> str | None:
    found = diagnose(summarize(recorded, run="", project="", peaks=peaks, part=half))
    return None if found.abstained or not found.findings else found.findings[0].kind


def _named(finding: Finding) -> str:
    return f"{finding.kind} ({100 * finding.share:.0f} %)"
