"""How large a step is: parameters of the networks that are trained, and samples and tokens that enter them, seen in some early steps.

Only shapes are read, so nothing waits for a device.
"""

from __future__ import annotations

from ..nested import is_complete, named_tensors
from ..parts import modules_in, own_parameters
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from .padding import main_input

FROM_STEP, TO_STEP = 3, 27  # completed steps between which forwards are counted


class SizeFacts(Observer):
    """Counts what enters trained roots; parameters once a root, shared ones once in all."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._roots: set = set()
        self._seen: set = set()  # ids of parameters
        self._figures = {"parameters": 0, "embedding": 0, "multiplying": 0}
        self._steps = self._samples = self._tokens = 0
        self._texts = self._others = 0  # forwards with token ids, and without
        self._counting = False

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """A trained root is about to run."""
        if not loop.fed_by_forward or loop.evaluating:
            return
        if id(module) not in self._roots and is_complete(module):
            self._roots.add(id(module))
            self._add(module)
        if not self._counting:
            return
        tensor = main_input([pair for value in args for pair in named_tensors(value)] + named_tensors(kwargs))
        shape = None if tensor is None else tuple(tensor.shape)
        if not shape or any(type(size) is not int for size in shape):
            return
        self._samples += shape[0]
        if len(shape) == 2 and not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype is not self._torch.bool:
            self._tokens += shape[0] * shape[1]
            self._texts += 1
        else:
            self._others += 1

    def _add(self, module) -> None:
        nn = self._torch.nn
        if any(type(part).__name__ == "FullyShardedDataParallel" for part in modules_in(module)):
            return  # its flat shards do not say what belongs to what
        lookups, elsewhere, found = set(), set(), {}
        for part in modules_in(module):
            own = {id(parameter): parameter for parameter in own_parameters(part)}
            found.update(own)
            (lookups if isinstance(part, (nn.Embedding, nn.EmbeddingBag)) else elsewhere).update(own)
        for key, parameter in found.items():
            if key in self._seen:
                continue
            self._seen.add(key)
            count = parameter.numel()
            self._figures["parameters"] += count
            if key in lookups:
                self._figures["embedding"] += count
            if parameter.dim() >= 2 and parameter.shape[0] > 1 and (key not in lookups or key in elsewhere):
                self._figures["multiplying"] += count

    def on_boundary(self, step: int) -> None:
        """Begin after the first steps, end some dozen later."""
        if self._counting:
            self._steps += 1
        self._counting = step >= FROM_STEP
        if step >= TO_STEP:
            loop.remove(self.on_forward, self.on_boundary)

    def write(self) -> None:
        """The figures so far."""
        if self._roots:
            fact(
                "sizes",
                **self._figures,
                steps=self._steps,
                samples=self._samples,
                tokens=self._tokens if self._texts and not self._others else None,
            )


def install(torch) -> SizeFacts:
    """Listen for some steps."""
    source = SizeFacts(torch)
    loop.add(source)
    return source
