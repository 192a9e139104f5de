"""Knobs: mechanical changes of a training program, each one thing at one place, each with its preconditions, risk and undo.

    from trainflash import knobs

    candidates, refused, briefs = knobs.plan(diagnosis, summary, checkout, command)
    candidate = knobs.propose(knobs.get("dataloader_workers"), "2", None, diagnosis=…, summary=…, checkout=…, command=…)

A knob is a file in `templates/knobs`; it names an edit of a known kind. Nothing here writes into the owner's project: a candidate is a
unified diff. An edit is made only where the source of a value is clear; otherwise there is a refusal with the reason.
"""

from trainflash.knobs import patterns
from trainflash.knobs.knob_files import Knob, by_name, catalogue, get, load
from trainflash.knobs.planning import plan, propose

__all__ = ["Knob", "by_name", "catalogue", "get", "load", "patterns", "plan", "propose"]
