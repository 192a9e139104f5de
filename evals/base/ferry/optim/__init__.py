"""Optimizer, schedules, averaging and losses."""

from ferry.optim import schedules

__all__ = ["schedules"]
