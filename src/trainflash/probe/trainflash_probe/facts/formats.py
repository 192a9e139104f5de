"""The owner's lines that chose a number format: torch's default, or what a network was turned into."""

from __future__ import annotations

from .. import own
from ..guard import swallow
from ..parts import parameters_in
from ..patches import like

TURN = ("to", "type", "double", "float", "half", "bfloat16")  # methods of a module that may change its parameters' format

_places: dict = {}  # format, such as "float64" -> the owner's place that chose it last


def install(torch) -> None:
    """Look at both; each is called a few times in a program."""
    _watch_default(torch)
    for name in TURN:
        _watch_turn(torch.nn.Module, name)


def place_of(name: str):
    """The owner's [file, line, function] that chose the format; None where nobody was seen to."""
    return _places.get(name)


def named(dtype: object) -> str:
    """Torch's name of a format without the module."""
    return str(dtype).replace("torch.", "")


def _watch_default(torch) -> None:
    original = torch.set_default_dtype

    @like(original)
    def set_default_dtype(*args, **kwargs):
        result = original(*args, **kwargs)
        _chosen(torch.get_default_dtype())
        return result

    torch.set_default_dtype = set_default_dtype


def _watch_turn(owner: type, name: str) -> None:
    original = getattr(owner, name)

    @like(original)
    def turned(module, *args, **kwargs):
        before = _format(module)
        result = original(module, *args, **kwargs)
        after = _format(module)
        if after is not before:
            _chosen(after)
        return result

    setattr(owner, name, turned)


def _format(module):
    """The format of the module's first parameter; None where it has none."""
    try:
        return next((parameter.dtype for parameter in parameters_in(module)), None)
    except Exception as error:
        swallow("formats", error)
        return None


def _chosen(dtype: object) -> None:
    try:
        place = own.caller()
        if place is not None:
            _places[named(dtype)] = place
    except Exception as error:
        swallow("formats", error)
