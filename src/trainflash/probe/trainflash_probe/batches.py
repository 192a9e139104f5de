"""Shapes and padding of sampled batches; reads host memory only, so a device is never waited for."""

from __future__ import annotations

import time

from .gaps import tensors_in
from .loop import loop
from .observer import Observer
from .writer import fact

ALL_UNTIL = 64  # batches; then one in 16
MAX_SHAPES = 200
MAX_ELEMENTS = 1 << 20  # a larger input is not searched for padding
MIN_WIDTH = 4


class BatchFacts(Observer):
    """Counts shapes of the first input, and elements in a trailing run of equal values."""

    def __init__(self) -> None:
        self._seen = 0
        self._shapes: dict = {}
        self._elements = self._padding = 0
        self._sized: set = set()
        self._next_s = 0.0

    def on_batch(self, loader_id: int, batch: object, role: str) -> None:
        """A batch from a loader or a data function."""
        if role == "eval" or not self._sampled():
            return
        tensors = tensors_in(batch)
        if loader_id >= 0 and loader_id not in self._sized and tensors:
            self._sized.add(loader_id)
            rows = max(1, int(tensors[0].shape[0])) if tensors[0].dim() else 1
            fact("sample", loader=loader_id, bytes=sum(tensor.numel() * tensor.element_size() for tensor in tensors) // rows)
        if tensors:
            self._look_at(tensors[0])

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """The input of a model whose data comes from elsewhere."""
        if loop.last_serial:
            loop.remove(self.on_forward)
            return
        if not loop.fed_by_forward or not self._sampled():
            return
        tensors = tensors_in([*args, *kwargs.values()])
        if tensors:
            self._look_at(tensors[0])

    def _sampled(self) -> bool:
        self._seen += 1
        return self._seen <= ALL_UNTIL or self._seen % 16 == 0

    def _look_at(self, tensor) -> None:
        shape = tuple(tensor.shape)
        if shape in self._shapes or len(self._shapes) < MAX_SHAPES:
            self._shapes[shape] = self._shapes.get(shape, 0) + 1
        if tensor.device.type != "cpu" or len(shape) not in (2, 3) or shape[1] < MIN_WIDTH or not 0 < tensor.numel() <= MAX_ELEMENTS:
            return
        if len(shape) == 2 and tensor.is_floating_point():
            return  # a row of features: equal values at its end are values, not padding
        rows = tensor.detach().numpy()
        differs = rows[:, ::-1] != rows[:, -1:]
        if len(shape) == 3:
            differs = differs.any(axis=2)
        run = differs.argmax(axis=1)
        run[~differs.any(axis=1)] = shape[1]
        padding = int(run[run > 1].sum())
        self._elements += shape[0] * shape[1]
        self._padding += padding

    def on_boundary(self, step: int) -> None:
        """Write the figures so far, at most every two seconds."""
        if not step % 16 and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + 2.0
            self.on_exit()

    def on_exit(self) -> None:
        """Write the figures."""
        if self._shapes:
            shapes = [[list(shape), count] for shape, count in self._shapes.items()]
            fact("batch", shapes=shapes, elements=self._elements, padding=self._padding)
