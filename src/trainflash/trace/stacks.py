"""Call stacks, and calls of torch with theirs."""

from __future__ import annotations

from dataclasses import dataclass

from trainflash.schema.runs import Location
from trainflash.schema.sites import Operand


@dataclass(frozen=True)
class StackFrame:
    """One frame: its line, and whose code it is."""

    location: Location  # of a library: the file below the folder of installed packages
    kind: str  # own, torch, library, python (its own library, and generated code)
    text: str = ""  # of a line of torch's that calls modules and hooks

    @property
    def package(self) -> str:
        """The library's name as it is imported, "" for the owner's and Python's own."""
        return self.location.file.replace("\\", "/").partition("/")[0].removesuffix(".py") if self.kind in ("library", "torch") else ""


Stack = tuple[StackFrame, ...]  # from the outermost frame to the leaf


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


@dataclass(frozen=True)
class CallTrace:
    """All calls of torch in one step."""

    step: int
    ns: int
    rows: tuple[CallRow, ...]
    beside_ns: int = 0  # of backward: not in nodes of the graph, but in what the engine calls before and behind them, such as hooks
