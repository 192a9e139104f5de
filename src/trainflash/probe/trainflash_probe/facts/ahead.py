"""Where the time before the training goes: the owner's lines from the import of torch to the first event, and what is importing.

The line sampler's ticks are counted here until there is a file to write them to. Time in an import belongs to no line: it is told apart.
"""

from __future__ import annotations

from .. import own
from ..writer import fact

MOST_LINES = 400
KEPT = 20

_rows: dict = {}  # (code, line) -> ns
_importing_ns = 0
_elsewhere_ns = 0  # no line of the owner's, or one too many
_told = False


def note(frame, ns: int) -> None:
    """One tick, which counts for the `ns` since the one before."""
    global _importing_ns, _elsewhere_ns
    while frame is not None and not own.is_own(frame.f_code):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _importing_ns += ns
            return
        frame = frame.f_back
    key = None if frame is None else (frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno)
    if key is None or (key not in _rows and len(_rows) >= MOST_LINES):
        _elsewhere_ns += ns
    else:
        _rows[key] = _rows.get(key, 0) + ns


def tell() -> None:
    """Write it once, when the training has begun."""
    global _told
    if _told:
        return
    _told = True
    if _rows or _importing_ns or _elsewhere_ns:
        costliest = sorted(_rows, key=_rows.get, reverse=True)[:KEPT]
        rows = [[own.path_of(code), line, own.name_of(code), _rows[(code, line)]] for code, line in costliest]
        fact("ahead", rows=rows, own_ns=sum(_rows.values()), importing_ns=_importing_ns, elsewhere_ns=_elsewhere_ns)
        _rows.clear()


def after_fork() -> None:
    """What the parent did ahead of its training is not the child's."""
    global _told
    _told = True
    _rows.clear()
