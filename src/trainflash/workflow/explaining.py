"""What `trainflash explain` answers: a finding's explanation, a knob or a pattern, whichever bears the name, or one line for each."""

from __future__ import annotations

import difflib
from typing import Any

from trainflash import diagnosis, knobs
from trainflash.errors import UsageError
from trainflash.schema import KINDS, to_plain

Explained = diagnosis.Explanation | knobs.Knob | knobs.patterns.Pattern


def explain(name: str) -> Explained:
    """The explanation of `name`. Raises `UsageError` with near names when there is none."""
    if name in KINDS:
        return diagnosis.explain(name)
    catalogue = [knob.name for knob in knobs.catalogue()]
    if name in catalogue:
        return knobs.get(name)
    if pattern := knobs.patterns.get(name):
        return pattern
    rewrites = [pattern.name for pattern in knobs.patterns.catalogue()]
    near = difflib.get_close_matches(name, [*KINDS, *catalogue, *rewrites], n=3, cutoff=0.4)
    raise UsageError(
        f"no finding, knob or pattern is called {name!r}",
        f"did you mean {' or '.join(near)}?"
        if near
        else f"findings: {', '.join(KINDS)}; patterns: {', '.join(rewrites)}; knobs: {', '.join(catalogue)}",
    )


def answer(explained: Explained) -> dict[str, Any]:
    """The JSON document of an explanation."""
    plain = to_plain(explained)
    plain.pop("schema", None)
    plain.pop("guide", None)
    if isinstance(explained, diagnosis.Explanation):
        plain["knobs"] = [knob.name for knob in knobs.catalogue() if explained.kind in knob.answers]
        plain["patterns"] = [pattern.name for pattern in knobs.patterns.catalogue() if explained.kind in pattern.answers]
    return {"schema": "explain.v1", "status": "ok", **plain}


def everything() -> dict[str, Any]:
    """The JSON document of all names that can be explained: findings by their symptom, knobs and patterns by their title."""
    symptoms = {explanation.kind: explanation.symptom for explanation in diagnosis.EXPLANATIONS}
    return {
        "schema": "explain_list.v1",
        "status": "ok",
        "findings": [{"name": kind, "what": symptoms[kind]} for kind in KINDS],
        "knobs": [{"name": knob.name, "what": knob.title} for knob in knobs.catalogue()],
        "patterns": [{"name": pattern.name, "what": pattern.title} for pattern in knobs.patterns.catalogue()],
    }
