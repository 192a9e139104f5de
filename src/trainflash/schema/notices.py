"""The one notice of a run that several stages understand: what a view did not let the program start."""

from __future__ import annotations

from collections.abc import Iterable

_REFUSED = "it was refused"


def refusal(what: str, mend: str) -> str:
    """The notice that `what` was refused; `mend` says what to do instead."""
    return f"{what}: {_REFUSED}; {mend}"


def refused(notices: Iterable[str]) -> tuple[str, str]:
    """What was refused, as a sentence, and the mend, of the first such notice; both empty where there is none."""
    what, _, mend = next((each for each in notices if _REFUSED in each), "").partition("; ")
    return what, mend
