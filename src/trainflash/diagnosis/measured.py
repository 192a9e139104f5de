"""Ceilings that were measured in replays take the place of the arithmetic ones."""

from __future__ import annotations

from dataclasses import replace

from trainflash.diagnosis.claims import Claim
from trainflash.schema import Ceiling, Evidence, Summary, WhatIf


def apply_what_if(summary: Summary, claims: list[Claim]) -> list[Claim]:
    """The claims with the measured speed-up as `ceiling` where a replay of their cost was made."""
    return [_measured(claim, _replay_of(claim, summary, claims)) for claim in claims]


def by_measurement(tied: list[Claim]) -> list[Claim]:
    """Tied claims by their measured speed-ups; as they were unless all of them were measured."""
    ceilings = [claim.finding.ceiling for claim in tied]
    if any(ceiling is None or ceiling.how != "measured" for ceiling in ceilings):
        return tied
    return sorted(tied, key=lambda claim: -(claim.finding.ceiling.speedup if claim.finding.ceiling is not None else 0.0))


def _replay_of(claim: Claim, summary: Summary, claims: list[Claim]) -> WhatIf | None:
    """The replay of this claim's kind at its place; one without a place, or elsewhere, only where the kind was claimed once."""
    kind = claim.finding.kind
    same = [replay for replay in summary.what_if if replay.kind == kind]
    here = [replay for replay in same if replay.location is not None and replay.location == claim.finding.location]
    if here:
        return here[0]
    return same[0] if same and sum(other.finding.kind == kind for other in claims) == 1 else None


def _measured(claim: Claim, replay: WhatIf | None) -> Claim:
    if replay is None:
        return claim
    interval = f" ({replay.ci_low:.2f} to {replay.ci_high:.2f})" if replay.ci_low is not None and replay.ci_high is not None else ""
    row = Evidence(f"measured without it ({replay.replaced} replaced)", f"{replay.speedup:.2f} times as fast{interval}")
    finding = replace(claim.finding, ceiling=Ceiling(round(replay.speedup, 3), "measured"), evidence=(*claim.finding.evidence, row))
    return replace(claim, finding=finding)
