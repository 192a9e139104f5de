"""The owner's lines that compare predictions with class targets, seen in one step, and how many of the targets the loss ignores."""

from __future__ import annotations

from ..guard import swallow
from ..nested import memory_of
from ..objects import is_tensor
from ..writer import fact
from .askers import asker
from .entry_points import EntryPoints

NAMES = ("cross_entropy", "nll_loss")
PLACES = ("input", "target", "weight", "size_average", "ignore_index")  # what both take, in order
IGNORED = -100  # torch's own default


class TargetLines:
    """Entry points of losses over classes, watched for one step. Targets on a device are not read: that would wait for it."""

    def __init__(self, torch) -> None:
        self._functional = torch.nn.functional
        self._points = EntryPoints(torch)
        self._rows: dict = {}  # (place, shape of the predictions) -> [calls, targets, ignored ones]

    def begin(self) -> None:
        """Watch the entry points."""
        for name in NAMES:
            self._points.watch(self._functional, name, self._noted)

    def _noted(self, original, args: tuple, kwargs: dict, caller) -> object:
        made = original(*args, **kwargs)
        try:
            if made.requires_grad:
                self._note({**dict(zip(PLACES, args)), **kwargs}, caller)
        except Exception as error:
            swallow("targets", error)
        return made

    def _note(self, given: dict, frame) -> None:
        predicted, target = given["input"], given["target"]
        if not is_tensor(target) or target.device.type != "cpu" or target.is_floating_point() or not target.numel():
            return
        place = asker(frame)
        key = None if place is None else tuple(place), tuple(predicted.shape)
        row = self._rows.setdefault(key, [0, 0, 0])
        row[0] += 1
        row[1] += target.numel()
        row[2] += int((memory_of(target) == given.get("ignore_index", IGNORED)).sum())

    def end(self, step: int) -> None:
        """Put everything back, and write."""
        self._points.restore()
        fact("target_lines", step=step - 1, rows=[[*key, *row] for key, row in self._rows.items()])
