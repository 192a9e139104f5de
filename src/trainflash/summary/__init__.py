"""Trace → `Summary`: one run's steady part, phase by phase, with what the run was seen to do; and its steps in order."""

from trainflash.summary.build import summarize
from trainflash.summary.sites import call_tree
from trainflash.summary.steady import Steady, halves, steady_part
from trainflash.summary.timeline import timeline

__all__ = ["Steady", "call_tree", "halves", "steady_part", "summarize", "timeline"]
