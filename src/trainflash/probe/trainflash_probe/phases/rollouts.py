"""Tells forwards that make training data (rollouts, generation) from evaluations: neither records gradients.

A rollout's forward runs a module that is trained, in training mode, from the same place of the owner's code as before the first update
(an update needs what it gives); no DataLoader, no data function and no fixed input feeds that loop. All else is an evaluation.
"""

from __future__ import annotations

import sys

from .. import own

MAX_PATHS = 16
MAX_DEPTH = 24  # owner's frames looked at

_paths: dict = {}  # call path -> ids of the modules that ran there, before the first update
impossible = False  # the loop's data is known to come from elsewhere


def note(module: object) -> None:
    """A forward without gradients before the first update."""
    if module.training and len(_paths) < MAX_PATHS:
        _paths.setdefault(_path(), set()).add(id(module))


def rule_out() -> None:
    """A data function or a fixed input was found."""
    global impossible
    impossible = True
    _paths.clear()


def makes_data(module: object, trained: dict) -> bool:
    """Whether the forward that is about to run is a rollout's."""
    return bool(_paths) and module.training and id(module) in trained and id(module) in _paths.get(_path(), ())


def _path() -> tuple:
    frame, found = sys._getframe(2), []
    while frame is not None and len(found) < MAX_DEPTH:
        if own.is_own(frame.f_code):
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)
