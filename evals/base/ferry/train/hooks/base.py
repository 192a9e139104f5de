"""The moments at which hooks are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferry.train.session import Session
    from ferry.train.state import TrainState


class Hook:
    """Does nothing at any moment; hooks override what they need."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def before_training(self, state: TrainState) -> None: ...

    def before_epoch(self, state: TrainState) -> None: ...

    def after_step(self, state: TrainState) -> None: ...

    def after_epoch(self, state: TrainState) -> None: ...

    def after_training(self, state: TrainState) -> None: ...


def due(every: int, step: int) -> bool:
    """Whether something that happens every so many steps (0: never) happens now."""
    return every > 0 and step % every == 0
