"""Optimizers whose gradients are computed in updates of others as well, and thrown away: where a GAN's critic learns, its generator gets
gradients that `zero_grad` clears before the generator's own backward.

Between two looks at one parameter's gradient, at each backward and each update, its identity and version say whether it was written to.
What was written in front of another optimizer's update counts as thrown away if it is changed again before the next backward, and as used
if the optimizer steps first: gradients may be gathered over several losses, and one backward may serve two optimizers.
"""

from __future__ import annotations

import weakref

from ..phases.loop import loop
from ..phases.observer import Observer

ALL_MADE = 8  # steps after which a program with one optimizer is not looked at any more
LAST_STEP = 32  # after that nobody asks: the last window of `again` has begun


class _Grads:
    """One optimizer's gradients, by those of one parameter."""

    def __init__(self, optimizer) -> None:
        self._optimizer, self._parameter = weakref.ref(optimizer), None
        self.mark = None  # the gradient's identity and version at the last look
        self.touched = False
        self.pending = self.thrown = self.used = 0

    def parameters(self):
        optimizer = self._optimizer()
        return [] if optimizer is None else [each for group in optimizer.param_groups for each in group["params"] if each.requires_grad]

    def now(self):
        parameter = None if self._parameter is None else self._parameter()
        if parameter is None:
            parameter = next((each for each in self.parameters() if each.grad is not None), None)
            self._parameter = None if parameter is None else weakref.ref(parameter)
        grad = None if parameter is None else parameter.grad
        return None if grad is None else (id(grad), grad._version)


class Thrown(Observer):
    """Counts, until it is told to stop."""

    def __init__(self) -> None:
        self._known: dict = {}  # id of an optimizer -> its gradients
        self._updated = False  # since the newest backward

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """What changed behind an update was cleared; what changed without one was written by a backward before."""
        for each in self._known.values():
            now = each.now()
            if not self._updated:
                each.touched = each.touched or (now is not None and now != each.mark)
            elif each.pending and now != each.mark:
                each.thrown, each.pending = each.thrown + each.pending, 0
            each.mark = now
        self._updated = False

    def on_update(self, optimizer: object) -> None:
        """Gradients of all others that were written since the last update may be in vain."""
        made = loop.clock.living()
        if loop.steps > (ALL_MADE if len(made) < 2 else LAST_STEP):
            self.stop()
            return
        if len(made) < 2:
            return
        for each in made:
            if id(each) not in self._known and hasattr(each, "param_groups"):
                self._known[id(each)] = _Grads(each)
        for key, each in self._known.items():
            now = each.now()
            touched = each.touched or (not self._updated and now is not None and now != each.mark)
            if key == id(optimizer):
                each.used, each.pending = each.used + each.pending, 0
            else:
                each.pending += touched
            each.touched, each.mark = False, now
        self._updated = True

    def owners(self) -> dict:
        """Id of a parameter -> id of its optimizer, of those whose gradients from updates of others are always thrown away."""
        found: dict = {}
        for key, each in self._known.items():
            if each.thrown and not each.used:
                found.update((id(parameter), key) for parameter in each.parameters())
        return found

    def stop(self) -> None:
        """Nothing more is looked at."""
        loop.remove(self.on_backward, self.on_update)
        self._known.clear()
