"""What each finding means: symptom, cause, evidence, fixes in the order of their cost, and what each may change in the training."""

from __future__ import annotations

import difflib

from trainflash.diagnosis.explanations.of_computing import COMPUTING
from trainflash.diagnosis.explanations.of_device import DEVICE
from trainflash.diagnosis.explanations.of_input import INPUT
from trainflash.diagnosis.explanations.of_interruptions import INTERRUPTIONS
from trainflash.diagnosis.explanations.of_ranks import RANKS
from trainflash.diagnosis.explanations.of_settings import SETTINGS
from trainflash.diagnosis.explanations.of_system import SYSTEM
from trainflash.diagnosis.explanations.parts import Explanation, Fix
from trainflash.errors import UsageError
from trainflash.schema import KINDS

EXPLANATIONS: tuple[Explanation, ...] = (*INPUT, *DEVICE, *INTERRUPTIONS, *SETTINGS, *COMPUTING, *RANKS, *SYSTEM)


def explain(kind: str) -> Explanation:
    """The explanation of `kind`. Raises `UsageError`, with near names, for one that does not exist."""
    for explanation in EXPLANATIONS:
        if explanation.kind == kind:
            return explanation
    near = difflib.get_close_matches(kind, KINDS, n=3, cutoff=0.4)
    raise UsageError(f"no finding is called {kind!r}", f"did you mean {' or '.join(near)}?" if near else f"findings: {', '.join(KINDS)}")


__all__ = ["EXPLANATIONS", "Explanation", "Fix", "explain"]
