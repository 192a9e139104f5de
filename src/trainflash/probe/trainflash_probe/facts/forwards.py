"""Looks once or twice into the owner's forward: which of the functions that it calls do equal work in each step.

A window lasts from a training forward to its backward. Never in a program that compiles: Dynamo would see the trace function.
"""

from __future__ import annotations

from ..phases import gaps
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from .calls import Window

TRACED_STEPS = (2, 3, 4, 19)  # completed steps, after which one forward is traced


class ForwardWatch(Observer):
    """Listens to forwards only in the steps that it traces."""

    def __init__(self) -> None:
        self._window = None
        self._armed = False

    def on_boundary(self, step: int) -> None:
        """Listen for the next forward, or never again."""
        self._disarm()
        if step in TRACED_STEPS:
            self._armed = True
            loop.on_forward.append(self.begin)
            loop.on_backward.append(self.end)
        elif step > TRACED_STEPS[-1]:
            loop.remove(self.on_boundary)

    def begin(self, module: object, args: tuple, kwargs: dict) -> None:
        """A root is about to run."""
        if self._window is None and loop.fed_by_forward and not loop.evaluating and not loop.eval_depth and not gaps._compiles:
            window = Window("forward", keep=True, state=lambda: loop.in_fwd)
            if window.begin():
                self._window = window
                gaps.traced_forward(window)
                fact("slowed", step=loop.steps)

    def end(self, tensors: tuple, grad_tensors: object) -> None:
        """Backward is about to run."""
        self._disarm()

    def on_exit(self) -> None:
        """Do not trace the end of the program."""
        self._disarm()

    def _disarm(self) -> None:
        if self._armed:
            self._armed = False
            loop.on_forward = [method for method in loop.on_forward if method != self.begin]
            loop.on_backward = [method for method in loop.on_backward if method != self.end]
        window, self._window = self._window, None
        if window is not None:
            window.end()
            gaps.prefetched(window.returned)
            window.returned = []
