"""Whether making a batch draws random numbers: from a global stream, or from a generator that the dataset or its module holds.

States are compared before and after a fetch; reading them draws nothing.
"""

from __future__ import annotations

from .. import generators
from ..guard import swallow
from ..phases.loop import loop
from ..writer import fact

LOOKS = 16  # first fetches of one loader in one process


class Draws:
    """What is known of one loader in this process: `known` is None before the first look."""

    def __init__(self, loader: int) -> None:
        self.loader = loader
        self.known: bool | None = None
        self._looks = 0

    def before(self, dataset: object):
        """The states in front of a fetch; None where no look is needed."""
        if self.known or self._looks >= LOOKS:
            return None
        self._looks += 1
        try:
            found = generators.held_by(dataset)
            with loop.unseen():
                return found, generators.states(found)
        except Exception as error:
            swallow("random streams", error)
            return None

    def after(self, before) -> None:
        """Compare with the states behind the fetch, and write down what is new."""
        if before is None:
            return
        try:
            found, states = before
            with loop.unseen():
                drew = not all(map(generators.equal, states, generators.states(found)))
            if drew or self.known is None:
                self.known = drew
                fact("draws", loader=self.loader, draws=drew)
        except Exception as error:
            swallow("random streams", error)
