"""Trace → `Summary`: one run's steady part, phase by phase, with what the run was seen to do."""

from trainflash.summary.build import summarize
from trainflash.summary.steady import Steady, steady_part

__all__ = ["Steady", "steady_part", "summarize"]
