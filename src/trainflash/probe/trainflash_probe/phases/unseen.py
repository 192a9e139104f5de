"""What the probe asks of tensors is hidden from the owner's subclasses and modes: they may count it, change it or refuse it.

While torch.jit or torch.fx traces, nothing may be asked: they write down what is done with their tensors, and name them by the variables
of our frames.
"""

from __future__ import annotations

import contextlib
import sys

from .loop import loop

hidden: list = []  # modes of the owner's that are off for the moment


def recorded() -> bool:
    """Whether torch.jit traces on this thread, or torch.fx does."""
    return sys.modules["torch"]._C._get_tracing_state() is not None or traced_by_fx()


def traced_by_fx() -> bool:
    """Whether inputs stand for values: whatever an observer asks of them would become part of the graph."""
    tracer = sys.modules.get("torch.fx._symbolic_trace")
    here = getattr(tracer, "_is_fx_tracing_tls", None)  # of this thread, since torch 2.14 or 2.15
    return bool(getattr(tracer, "_is_fx_tracing_flag", False) or getattr(here, "flag", False))


def install(torch) -> None:
    """From now on observers are told things unseen."""
    inside, modes = torch._C, torch._C._len_torch_dispatch_stack
    without_modes = sys.modules["torch.utils._python_dispatch"]._disable_current_modes

    def unseen():
        if not modes():
            return inside.DisableTorchFunction()
        stack = contextlib.ExitStack()
        hidden.extend(inside._get_dispatch_stack_at(index) for index in range(modes()))
        stack.callback(hidden.clear)
        stack.enter_context(without_modes())
        stack.enter_context(inside.DisableTorchFunction())
        return stack

    with unseen():
        pass
    loop.unseen = unseen
