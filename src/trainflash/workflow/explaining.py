"""What `trainflash explain` answers: a finding's explanation or a knob, whichever bears the name, or one line for each of them."""

from __future__ import annotations

import difflib
from typing import Any

from trainflash import diagnosis, knobs
from trainflash.errors import UsageError
from trainflash.schema import KINDS, to_plain


def explain(name: str) -> diagnosis.Explanation | knobs.Knob:
    """The explanation of `name`. Raises `UsageError` with near names when there is none."""
    if name in KINDS:
        return diagnosis.explain(name)
    catalogue = [knob.name for knob in knobs.catalogue()]
    if name in catalogue:
        return knobs.get(name)
    near = difflib.get_close_matches(name, [*KINDS, *catalogue], n=3, cutoff=0.4)
    raise UsageError(
        f"no finding or knob is called {name!r}",
        f"did you mean {' or '.join(near)}?" if near else f"knobs: {', '.join(catalogue)}; findings: {', '.join(KINDS)}",
    )


def answer(explained: diagnosis.Explanation | knobs.Knob) -> dict[str, Any]:
    """The JSON document of an explanation."""
    plain = to_plain(explained)
    plain.pop("schema", None)
    plain.pop("guide", None)
    if isinstance(explained, diagnosis.Explanation):
        plain["knobs"] = [knob.name for knob in knobs.catalogue() if explained.kind in knob.answers]
    return {"schema": "explain.v1", "status": "ok", **plain}


def everything() -> dict[str, Any]:
    """The JSON document of all names that can be explained: findings by their symptom, knobs by their title."""
    symptoms = {explanation.kind: explanation.symptom for explanation in diagnosis.EXPLANATIONS}
    return {
        "schema": "explain_list.v1",
        "status": "ok",
        "findings": [{"name": kind, "what": symptoms[kind]} for kind in KINDS],
        "knobs": [{"name": knob.name, "what": knob.title} for knob in knobs.catalogue()],
    }
