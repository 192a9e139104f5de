"""Updates that lines of the program make, where neither an optimizer nor a function of its own does: the parameters have changed.

They are looked at whenever something of the next update begins: a batch, a forward, a backward. What changed them, and the gradients that
it used, are not seen; what they were before is known from the end of the update before.
"""

from __future__ import annotations

from ..phases import own_updates
from ..phases.loop import loop


class Inline(own_updates.OwnUpdate):
    """Stands for an optimizer of the parameters that a first backward gives gradients."""

    def __init__(self, leaves: list) -> None:
        super().__init__(["", 0, "lines of the program"], leaves)
        self._watched = own_updates.Watched(leaves)
        self._state = self._watched.state()

    def has_updated(self) -> bool:
        """Whether the parameters have changed since the last time that this was asked."""
        before, self._state = self._state, self._watched.state()
        return before != self._state


def of(tensors: tuple):
    """The update of the program's own lines that will follow a backward of these; None where something else is known to make it."""
    if own_updates.kept or loop.clock.knows_optimizers():
        return None
    leaves = own_updates.leaves_of(tensors)
    return Inline(leaves) if leaves else None
