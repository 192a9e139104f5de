"""Where the owner made an object of a library's that joins samples: none of the owner's code runs when it is called."""

from __future__ import annotations

import functools

from .. import imports, own
from ..guard import swallow
from ..objects import attributes_of

MODULE = "transformers.data.data_collator"
NAME = "DataCollator"

_places: dict = {}  # class -> the owner's [file, line, function] that made an object of it last


def install() -> None:
    """Watch Hugging Face's classes once they are imported."""
    imports.after(MODULE, _watch)


def made_at(joins: object):
    """Where `joins`, or what a trainer wrapped it for, was made; None where that was not seen."""
    held = (type(part) for part in (joins, *attributes_of(joins).values()))
    return next((_places[kind] for kind in held if kind in _places), None)


def _watch(module) -> None:
    for owner in list(vars(module).values()):
        if type(owner) is type and NAME in owner.__name__ and "__init__" in vars(owner):
            owner.__init__ = _noted(owner.__init__)


def _noted(original):
    @functools.wraps(original)
    def __init__(joins, *args, **kwargs):
        try:
            place = own.caller()
            if place is not None:
                _places[type(joins)] = place
        except Exception as error:
            swallow("collators", error)
        original(joins, *args, **kwargs)

    return __init__
