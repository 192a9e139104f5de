"""What a step computes in float64, as its graph tells, and the owner's lines that go over to it, seen in one step."""

from __future__ import annotations

from ..guard import swallow
from ..objects import is_tensor
from ..writer import fact
from .askers import asker
from .entry_points import EntryPoints
from .weights import consumers

CASTS = ("to", "type", "type_as", "double")
OPERATORS = ("add", "sub", "mul", "div", "matmul", "__rsub__", "__rdiv__", "__rmatmul__")  # of two formats: the wider one is taken
MAKERS = ("tensor", "as_tensor")
OF_NUMPY = "from_numpy"  # which torch asks nobody about
MOST_ROWS = 8


def numbers_of_double(roots: list, torch) -> set:
    """Sequence numbers of the nodes of the graph below `roots` whose results are float64."""
    wide = (torch.float64, torch.complex128)
    return {node._sequence_nr() for node in consumers(roots) if any(each.dtype in wide for each in node._input_metadata)}


class DoubleLines:
    """Entry points that can turn values into float64, watched for one step; the elements that each line made of them."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._points = EntryPoints(torch)
        self._rows: dict = {}  # (place, whether a gradient will come) -> elements

    def begin(self) -> None:
        """Watch the entry points."""
        tensor = self._torch.Tensor
        for name in (*CASTS, *OPERATORS):
            self._points.watch(tensor, name, self._noted)
        for name in MAKERS:
            self._points.watch(self._torch, name, self._noted)
        self._points.watch_unasked(self._torch, OF_NUMPY, self._noted)

    def _noted(self, original, args: tuple, kwargs: dict, caller) -> object:
        made = original(*args, **kwargs)
        try:
            self._note(made, args, caller)
        except Exception as error:
            swallow("float64", error)
        return made

    def _note(self, made, args: tuple, frame) -> None:
        double = self._torch.float64
        if not is_tensor(made) or made.dtype is not double:
            return
        given = [each for each in args if is_tensor(each) and each.is_floating_point()]
        if given and all(each.dtype is double for each in given):
            return
        place = asker(frame)
        if place is not None:
            key = tuple(place), made.requires_grad
            self._rows[key] = self._rows.get(key, 0) + made.numel()

    def end(self, step: int) -> None:
        """Put everything back, and write the lines: those whose values get gradients first, then by elements."""
        self._points.restore()
        rows = sorted(self._rows.items(), key=lambda row: (row[0][1], row[1]), reverse=True)[:MOST_ROWS]
        fact("double_lines", step=step - 1, rows=[[list(place), graded, elements] for (place, graded), elements in rows])
