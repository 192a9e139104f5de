"""The owner's lines that compare predictions with class targets, seen in one step, and how many of the targets the loss ignores."""

from __future__ import annotations

from ..guard import swallow
from ..nested import memory_of
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
        self._tensor = torch.Tensor  # of another class, the program's own code might answer
        self._points = EntryPoints(torch)
        self._rows: dict = {}  # (place, shape of the predictions) -> [calls, targets, ignored ones]

    def begin(self) -> None:
        """Watch the entry points."""
        for name in NAMES:
            self._points.watch(self._functional, name, self._noted)

    def _noted(self, original, args: tuple, kwargs: dict, caller) -> object:
        made = original(*args, **kwargs)
        try:
            self._note({**dict(zip(PLACES, args)), **kwargs}, caller)
        except Exception as error:
            swallow("targets", error)
        return made

    def _note(self, given: dict, frame) -> None:
        """Targets that are probabilities of classes count, all of them."""
        predicted, target = given["input"], given["target"]
        if type(predicted) is not self._tensor or type(target) is not self._tensor or not predicted.requires_grad:
            return
        if target.device.type != "cpu" or predicted.dim() < 2 or not predicted.numel():
            return
        place, classes = asker(frame), predicted.shape[1]
        row = self._rows.setdefault((None if place is None else tuple(place), tuple(predicted.shape)), [0, 0, 0])
        row[0] += 1
        row[1] += predicted.numel() // classes
        if not target.is_floating_point():
            row[2] += int((memory_of(target) == given.get("ignore_index", IGNORED)).sum())

    def end(self, step: int) -> None:
        """Put everything back, and write."""
        self._points.restore()
        fact("target_lines", step=step - 1, rows=[[*key, *row] for key, row in self._rows.items()])
