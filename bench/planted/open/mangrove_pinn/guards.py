"""Decorators for residuals and updates."""

import functools
import logging
import math
import os
import time
from collections.abc import Callable

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"
log = logging.getLogger("mangrove.guards")


class Diverged(RuntimeError):
    """The loss is no number any more."""


def guarded(update: Callable[..., dict[str, float]]) -> Callable[..., dict[str, float]]:
    """Stops with a good message where an update diverges."""

    @functools.wraps(update)
    def wrapper(*args, **kwargs) -> dict[str, float]:
        with torch.autograd.set_detect_anomaly(not FIXED):
            figures = update(*args, **kwargs)
        wrong = [name for name, value in figures.items() if not math.isfinite(value)]
        if wrong:
            raise Diverged(f"not finite: {', '.join(wrong)}")
        return figures

    return wrapper


def timed(name: str) -> Callable:
    """Says when a call took unusually long."""

    def decorate(function: Callable) -> Callable:
        slowest = 0.0

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            nonlocal slowest
            began = time.monotonic()
            result = function(*args, **kwargs)
            seconds = time.monotonic() - began
            if seconds > 2 * slowest > 0:
                log.debug("%s took %.3f s", name, seconds)
            slowest = max(slowest, seconds)
            return result

        return wrapper

    return decorate
