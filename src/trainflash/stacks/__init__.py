"""Call stacks: whose code a frame is, where a stack's time counts, and the call tree that stacks make."""

from trainflash.stacks.call_tree import Node, root
from trainflash.stacks.callbacks import kind_of
from trainflash.stacks.frames import LEAVES, Stack, StackFrame, anchor, anchored, frame_at, loop_lines, network_lines, owners
from trainflash.stacks.modules import Bare, Calls, beside_modules, module_calls

__all__ = [
    "LEAVES",
    "Bare",
    "Calls",
    "Node",
    "Stack",
    "StackFrame",
    "anchor",
    "anchored",
    "beside_modules",
    "frame_at",
    "kind_of",
    "loop_lines",
    "module_calls",
    "network_lines",
    "owners",
    "root",
]
