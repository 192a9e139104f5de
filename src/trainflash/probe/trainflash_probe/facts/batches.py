"""Shapes and padding of sampled batches; reads host memory only, so a device is never waited for."""

from __future__ import annotations

import sys

from ..nested import named_tensors, stands_in
from ..objects import MOST, attributes_of, is_a, is_tensor
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from .columns import Columns
from .padding import Padding, main_input

# All of the first batches; then those of one step in SHAPES_EVERY for shapes, in PADDING_EVERY for padding and, after SHAPES_UNTIL, for
# shapes too.
ALL_UNTIL = 16  # batches
SHAPES_EVERY = 8
SHAPES_UNTIL = 512  # steps
PADDING_EVERY = 32
MOST_OF_STEP = 16  # batches
MAX_SHAPES = 200


class BatchFacts(Observer):
    """Counts shapes of what enters the model, and elements that are padding."""

    def __init__(self) -> None:
        self._seen = self._turns = 0
        self._left = ALL_UNTIL  # batches of this turn to look at
        self._padded = True  # they are looked at for padding, too
        self._from_batches = False
        self._shapes: dict = {}  # of the main input
        self._signatures: set = set()  # shapes of all tensors of a batch with more than one dimension
        self._padding = Padding()
        self._columns = Columns()
        self._sized: set = set()
        self._listed = 0  # see `_columns_in`

    def on_batch(self, loader_id: int, batch: object, role: str) -> None:
        """A batch from a loader or a data function."""
        if role == "eval":
            return
        if not self._is_looked_at():
            return
        named = _held(batch)
        self._listed = max(self._listed, _columns_in(batch))
        if loader_id >= 0 and loader_id not in self._sized and named:
            self._sized.add(loader_id)
            rows = max(1, int(named[0][1].shape[0])) if named[0][1].dim() else 1
            fact("sample", loader=loader_id, bytes=sum(tensor.numel() * tensor.element_size() for _, tensor in named) // rows)
        tensor = main_input(named)
        if tensor is not None and tensor.dim() > 1:  # else they are indices of what the model will read
            self._from_batches = True
            self._look_at(named)
            if self._padded:
                self._columns.look(batch, tensor, loop.batch_from)

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """The input of a model whose data comes from elsewhere."""
        if self._from_batches:
            loop.remove(self.on_forward)
            return
        if not loop.fed_by_forward:
            return
        if self._is_looked_at():
            self._look_at([pair for value in args for pair in _held(value)] + named_tensors(kwargs))

    def _is_looked_at(self) -> bool:
        """Whether this batch is; from the first ones on, those of this step are the last for a while."""
        self._seen += 1
        if self._seen == ALL_UNTIL or (self._seen > ALL_UNTIL and self._left == MOST_OF_STEP):
            loop.call_at(loop.steps + 1, self._pause)
        self._left -= 1
        return self._left >= 0

    def _pause(self) -> None:
        """A step was looked at: be told of no batch until the next one that is."""
        loop.remove(self.on_batch, self.on_forward)
        self._turns += 1
        loop.call_at(loop.steps + (SHAPES_EVERY if loop.steps <= SHAPES_UNTIL else PADDING_EVERY) - 1, self._resume)

    def _resume(self) -> None:
        loop.on_batch.append(self.on_batch)
        if not self._from_batches:
            loop.on_forward.append(self.on_forward)
        self._left = MOST_OF_STEP
        self._padded = loop.steps > SHAPES_UNTIL or not self._turns % (PADDING_EVERY // SHAPES_EVERY)

    def _look_at(self, named: list) -> None:
        tensor = main_input(named)
        if tensor is None or stands_in(tensor):
            return
        shape = tuple(tensor.shape)
        if any(type(size) is not int for size in shape):
            return  # while jit traces
        if shape in self._shapes or len(self._shapes) < MAX_SHAPES:
            self._shapes[shape] = self._shapes.get(shape, 0) + 1
        if len(self._signatures) < MAX_SHAPES:
            self._signatures.add(tuple(tuple(each.shape) for _, each in named if each.dim() > 1) or shape)
        if self._padded:
            self._padding.look([(name, each) for name, each in named if each.device.type == "cpu" and not each.is_sparse])

    def on_interval(self, step: int) -> None:
        """Write the figures so far."""
        self.on_exit()

    def on_exit(self) -> None:
        """Write the figures."""
        if self._shapes:
            shapes = [[list(shape), count] for shape, count in self._shapes.items()]
            elements, padding, common = self._padding.totals()
            padded, by = self._columns.found()
            counts = {"elements": elements, "padding": padding, "common_padding": common}
            fact("batch", shapes=shapes, signatures=len(self._signatures), padded=padded, padded_by=by, listed=self._listed, **counts)


def _columns_in(batch: object) -> int:
    """The length of the longest list in a batch that holds a tensor of one dimension for each number of its samples."""
    parts = batch.values() if type(batch) is dict else batch if type(batch) in (list, tuple) else ()
    lists = [part for part in parts if type(part) is list and part and is_tensor(part[0]) and part[0].dim() == 1]
    return max([len(part) for part in lists], default=0)


def _held(value: object) -> list:
    """(lower-case key, tensor) of a batch; of an object of the program's own its attributes."""
    found = named_tensors(value)
    if found or is_a(value, sys.modules["torch"].nn.Module):
        return found
    return [pair for name, held in attributes_of(value).items() for pair in named_tensors(held, name.lower())][:MOST]
