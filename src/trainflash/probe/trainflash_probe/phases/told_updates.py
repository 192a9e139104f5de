"""Updates of the owner's that an earlier run has found: known from the first backward on, and not looked for again."""

from __future__ import annotations

import gc
import json
import os
import types

from .. import own
from ..guard import swallow
from .brackets import is_passage
from .loop import loop
from .own_updates import bracket, leaves_of, nobody_else_updates

MOST_BACKWARDS = 3  # own: a function may be made behind the first one


class ToldUpdates:
    """Listens to the first backwards; `wanted` are (path in the project, qualified name) of the functions."""

    def __init__(self, wanted: list) -> None:
        self._wanted = wanted
        self._left = MOST_BACKWARDS
        loop.on_backward.append(self.on_backward)

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """A backward begins: its leaves are what the functions update."""
        self._left -= 1
        done = not self._left or not nobody_else_updates()
        try:
            done = done or self._bracket(leaves_of(tensors))
        except Exception as error:
            done = True
            swallow("told updates", error)
        if done:
            loop.remove(self.on_backward)

    def _bracket(self, leaves: list) -> bool:
        meant = [each for each in gc.get_objects() if type(each) is types.FunctionType and self._is_meant(each.__code__)]
        once = {id(function.__code__): function for function in meant}  # each brackets all functions that run its code
        return any([bracket(function.__code__, function.__globals__, leaves) for function in once.values()])

    def _is_meant(self, code) -> bool:
        if is_passage(code) or not own.is_own(code):
            return False
        path, _, name = own.place_of_code(code)
        return any([name == known and path.endswith(f"/{file}") for file, known in self._wanted])


def install() -> None:
    """Where the run was told of some."""
    told = os.environ.get("TRAINFLASH_UPDATES")
    if told:
        ToldUpdates([(str(path), str(name)) for path, name in json.loads(told)])
