"""Tells forwards that make training data (rollouts, generation), and a teacher's, from evaluations: none of them records gradients.

A rollout's forward runs a module that is trained, in training mode, from the same place of the owner's code as before the first update
(an update needs what it gives); no DataLoader, no data function and no fixed input feeds that loop. A teacher's runs a module that is never
trained, before the first update and in each step since, a few times in a row at most. All else is an evaluation.
"""

from __future__ import annotations

import sys

from .. import own

MAX_PATHS = 16
MAX_DEPTH = 24  # owner's frames looked at
MOST_IN_A_ROW = 4  # forwards of a teacher, without another module's between them: several views of a batch; an evaluation has more

_paths: dict = {}  # call path -> ids of the modules that ran there, before the first update
_teachers: dict = {}  # id of a module -> [step it ran in last, forwards of that step before it, forwards in a row]
impossible = False  # the loop's data is known to come from elsewhere


def note(module: object) -> None:
    """A forward without gradients before the first update."""
    _teachers[id(module)] = [0, 0, 1]
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


def teaches(module: object, loop) -> bool:
    """Whether the forward that is about to run is a teacher's."""
    last = _teachers.get(id(module))
    if last is None or id(module) in loop.trained:
        return False
    step, forwards = loop.steps + loop.pending, 0 if loop.pending else loop.forwards
    in_a_row = last[2] + 1 if last[0] == step and last[1] + 1 == forwards else 1
    if step - last[0] > 1 or in_a_row > MOST_IN_A_ROW:
        del _teachers[id(module)]
        return False
    last[:] = step, forwards, in_a_row
    return True


def _path() -> tuple:
    frame, found = sys._getframe(2), []
    while frame is not None and len(found) < MAX_DEPTH:
        if own.is_own(frame.f_code):
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)
