"""Trace → `Summary`: one run's steady part, phase by phase, with what the run was seen to do."""

from trainflash.summary.build import Steady, steady_part, summarize

__all__ = ["Steady", "steady_part", "summarize"]
