"""Shapes and padding of sampled batches; reads host memory only, so a device is never waited for."""

from __future__ import annotations

from ..nested import named_tensors
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from .padding import Padding, main_input

ALL_UNTIL = 16  # batches; then one in SHAPES_EVERY for shapes, one in PADDING_EVERY for padding and, after SHAPES_UNTIL, for shapes too
SHAPES_EVERY = 8
SHAPES_UNTIL = 512
PADDING_EVERY = 32
MAX_SHAPES = 200


class BatchFacts(Observer):
    """Counts shapes of what enters the model, and elements that are padding."""

    def __init__(self) -> None:
        self._seen = 0
        self._from_batches = False
        self._shapes: dict = {}  # of the main input
        self._signatures: set = set()  # shapes of all tensors of a batch with more than one dimension
        self._padding = Padding()
        self._sized: set = set()

    def on_batch(self, loader_id: int, batch: object, role: str) -> None:
        """A batch from a loader or a data function."""
        if role == "eval":
            return
        self._seen += 1
        if not self._is_looked_at():
            return
        named = named_tensors(batch)
        if loader_id >= 0 and loader_id not in self._sized and named:
            self._sized.add(loader_id)
            rows = max(1, int(named[0][1].shape[0])) if named[0][1].dim() else 1
            fact("sample", loader=loader_id, bytes=sum(tensor.numel() * tensor.element_size() for _, tensor in named) // rows)
        tensor = main_input(named)
        if tensor is not None and tensor.dim() > 1:  # else they are indices of what the model will read
            self._from_batches = True
            self._look_at(named)

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """The input of a model whose data comes from elsewhere."""
        if self._from_batches:
            loop.remove(self.on_forward)
            return
        if not loop.fed_by_forward:
            return
        self._seen += 1
        if self._is_looked_at():
            self._look_at([pair for value in args for pair in named_tensors(value)] + named_tensors(kwargs))

    def _is_looked_at(self) -> bool:
        return self._seen <= ALL_UNTIL or not self._seen % (SHAPES_EVERY if self._seen <= SHAPES_UNTIL else PADDING_EVERY)

    def _look_at(self, named: list) -> None:
        tensor = main_input(named)
        if tensor is None:
            return
        shape = tuple(tensor.shape)
        if any(type(size) is not int for size in shape):
            return  # while jit traces
        if shape in self._shapes or len(self._shapes) < MAX_SHAPES:
            self._shapes[shape] = self._shapes.get(shape, 0) + 1
        if len(self._signatures) < MAX_SHAPES:
            self._signatures.add(tuple(tuple(each.shape) for _, each in named if each.dim() > 1) or shape)
        if self._seen <= ALL_UNTIL or self._seen % PADDING_EVERY == 0:
            self._padding.look([(name, each) for name, each in named if each.device.type == "cpu" and not each.is_sparse])

    def on_interval(self, step: int) -> None:
        """Write the figures so far."""
        self.on_exit()

    def on_exit(self) -> None:
        """Write the figures."""
        if self._shapes:
            shapes = [[list(shape), count] for shape, count in self._shapes.items()]
            elements, padding, common = self._padding.totals()
            fact("batch", shapes=shapes, signatures=len(self._signatures), elements=elements, padding=padding, common_padding=common)
