"""Weighted stacks → a call tree, and ways down in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from trainflash.schema import CallNode, Location
from trainflash.stacks.frames import StackFrame

LEAST_SHARE = 0.005  # own: a node below half a percent of the time is not drawn
HOTTEST = 0.5  # own: a way down goes on where most of what is there goes one way
# Frames that only hand a call on, by the end of their file and their function's name: a way down does not name them.
_HANDS_ON = (
    ("torch/nn/modules/module.py", ("_call_impl", "_wrapped_call_impl", "inner")),
    ("torch/nn/modules/container.py", ("forward",)),
    ("torch/utils/_contextlib.py", ("decorate_context",)),
    ("torch/autograd/function.py", ("apply",)),
    ("torch/overrides.py", ("handle_torch_function",)),  # what a mode is told through, one of the probe's own too
    ("torch/nn/utils/clip_grad.py", ("_no_grad_wrapper",)),
    ("torch/optim/optimizer.py", ("wrapper", "_use_grad", "maybe_fallback", "profile_hook_step")),
    ("contextlib.py", ("inner", "__enter__", "__exit__")),
)
_PIECES = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>")  # which Python runs as functions of their own


@dataclass
class Node:
    """A line and what it called; `ns` is all time below it."""

    frame: StackFrame
    ns: int = 0
    children: dict[StackFrame, Node] = field(default_factory=dict)

    def add(self, stack: Iterable[StackFrame], ns: int) -> None:
        """Weighs a stack below this node."""
        node = self
        node.ns += ns
        for frame in stack:
            child = node.children.get(frame)
            if child is None:
                child = node.children[frame] = Node(frame)
            child.ns += ns
            node = child

    def way_down(self) -> list[StackFrame]:
        """The frames from here to where the time no longer goes one way, without those that only hand a call on.

        Lines of one function that a node calls count together, and the hottest of them stands for them.
        """
        found: list[StackFrame] = []
        nodes = [self]
        while True:
            below: dict[tuple[str, str], list[Node]] = {}
            for node in nodes:
                for child in node.children.values():
                    below.setdefault((child.frame.location.file, child.frame.location.function), []).append(child)
            hottest = max(below.values(), key=_time, default=None)
            if hottest is None or _time(hottest) < HOTTEST * self.ns:
                return found
            frame = max(hottest, key=lambda node: node.ns).frame
            if not hands_on(frame):
                found.append(frame)
            nodes = hottest

    def drawn(self, whole_ns: int) -> CallNode:
        """This node for a picture, with what is large enough to be seen."""
        children = sorted((child for child in self.children.values() if child.ns >= LEAST_SHARE * whole_ns), key=lambda node: -node.ns)
        return CallNode(self.frame.location, self.frame.kind, self.ns / whole_ns, tuple(child.drawn(whole_ns) for child in children))


def _time(nodes: list[Node]) -> int:
    return sum(node.ns for node in nodes)


def hands_on(frame: StackFrame) -> bool:
    """Whether a frame is only on the way: torch's calling of modules, decorators."""
    file, name = frame.location.file, frame.location.function.rpartition(".")[2]
    return name in _PIECES or any(file.endswith(end) and name in names for end, names in _HANDS_ON)


def root(phase: str) -> Node:
    """A tree of one phase."""
    return Node(StackFrame(Location(phase, 0, phase), "phase"))
