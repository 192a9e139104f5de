"""Calls of torch with their stacks."""

from __future__ import annotations

from dataclasses import dataclass

from trainflash.schema.sites import Operand
from trainflash.stacks import Stack


@dataclass(frozen=True)
class CallRow:
    """Calls of one function of torch with one kind of arguments by one stack, in one recorded step."""

    stack: Stack
    phase: str  # Fwd, Bwd (inside backward), Opt, Data; "" for none
    name: str
    calls: int
    ns: int
    backward_ns: int  # of the nodes that they added to the graph
    given: tuple[Operand, ...] = ()
    made: tuple[Operand, ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()
    alone_ns: tuple[int, ...] = ()  # of one such call by itself, both ways; and where it was tried, with images in channels_last

    @property
    def in_channels_last(self) -> float | None:
        """Its time with images in that order over that in torch's default order."""
        return self.alone_ns[1] / self.alone_ns[0] if len(self.alone_ns) > 1 else None


@dataclass(frozen=True)
class CallTrace:
    """All calls of torch in one step."""

    step: int
    ns: int
    rows: tuple[CallRow, ...]
    nodes: int = 0  # of the graph that backward came to
    beside_ns: int = 0  # of backward: not in nodes of the graph, but in what the engine calls before and behind them, such as hooks
