"""No exception of the probe reaches the program: each is counted by the place that swallowed it, and reported as a fact."""

from __future__ import annotations

swallowed: dict = {}  # place -> [count, last message]


def swallow(place: str, error: BaseException) -> None:
    """Count `error`; called from every `except Exception` of the probe."""
    entry = swallowed.setdefault(place, [0, ""])
    entry[0] += 1
    entry[1] = f"{type(error).__name__}: {error}"[:200]


def counts() -> dict:
    """Swallowed exceptions by place, with the last message of each."""
    return {place: {"count": count, "last": last} for place, (count, last) in swallowed.items()}
