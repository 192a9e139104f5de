"""Hooks on backward, autograd.grad, torch.func's gradients, optimizers and GradScaler."""

from __future__ import annotations

import functools
import sys
from threading import get_ident

from .. import codes, inside
from ..guard import swallow
from ..patches import like
from ..writer import emit
from . import closures, modules
from .loop import loop
from .spans import bracket

_INNER = "inner"
_functional = 0  # calls of `torch.func.grad` that run


def install(torch) -> None:
    """Wrap torch's entry points of backward and update."""
    in_dynamo, is_compiling = torch.compiler.is_dynamo_compiling, torch.compiler.is_compiling
    enter, leave = _backward(in_dynamo, is_compiling)
    inside.hook(torch.autograd.backward, enter, leave, ("tensors", "grad_tensors"))
    inside.hook(torch.autograd.grad, *_by_hand(enter, leave, in_dynamo), ("outputs", "create_graph"))
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        clip = getattr(torch.nn.utils, name)
        inside.hook(getattr(clip, "__wrapped__", clip), *_clipping(in_dynamo))
    transforms = sys.modules.get("torch._functorch.eager_transforms")
    if hasattr(transforms, "grad_and_value_impl"):
        transforms.grad_and_value_impl = _functional_gradient(transforms.grad_and_value_impl, is_compiling)
    optimizer = torch.optim.Optimizer
    optimizer.__init__ = _constructed(optimizer.__init__)
    hook = optimizer.profile_hook_step
    optimizer.profile_hook_step = staticmethod(functools.wraps(hook)(lambda function: _step(hook(function), in_dynamo, is_compiling)))
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
    if scaler is not None:
        scaler.step = _scaler_step(scaler.step)
        for name in ("unscale_", "update"):  # what `step` leaves to the loop, or would do itself
            bracket(scaler, name, "Opt")


def _backward(in_dynamo, is_compiling) -> tuple:
    def enter(tensors, grad_tensors=None):
        if in_dynamo() or loop.in_bwd or (loop.tid != get_ident() and not loop.latch(get_ident())):
            return False
        if loop.pending or loop.evaluating or loop.on_backward or loop.last_serial != loop.train_serial or not loop.forwards:
            return told(tensors, grad_tensors)
        loop.latched = loop.in_bwd = True  # nothing has changed since the step began
        emit(22)  # codes.BWD, as a constant for speed
        return True

    def told(tensors, grad_tensors):
        if is_compiling():
            return False
        try:
            loop.latched = True
            if not loop.forwards:
                modules.backward_without_forward()
                closures.bare = loop.in_opt > 0
            loop.arrives()
            loop.backward_begins(tensors, grad_tensors)
        except Exception as error:
            swallow("backward", error)
        loop.in_bwd = True
        loop.begin(codes.BWD)
        return True

    def leave(entered) -> None:
        loop.in_bwd = False
        emit(23)
        if closures.running is not None:
            closures.running.begin()
        if loop.clock.single is None and not loop.in_opt and loop.clock.backward_completes_step():
            loop.mark_update()

    return enter, leave


def _clipping(in_dynamo) -> tuple:
    """Clipping gradients is a part of the update that follows."""

    def enter():
        if in_dynamo() or not loop.started or loop.in_opt or loop.in_bwd or loop.tid != get_ident():
            return False
        emit(codes.OPT)
        return True

    return enter, lambda entered: emit(codes.OPT_END)


def _by_hand(enter, leave, in_dynamo) -> tuple:
    """A derivative that is a part of the graph itself, as of an energy by positions, is forward: the coming backward goes through it.

    While a network that is trained in another mode is evaluated, a derivative is a part of what is scored.
    """

    def asked(outputs, create_graph):
        if loop.evaluating and loop.tid == get_ident() and loop.scores_with_gradients() and not in_dynamo():
            return False
        if create_graph and loop.forwards and not (_functional or loop.pending or loop.in_bwd or loop.in_opt or in_dynamo()):
            if loop.tid != get_ident():
                return False
            loop.by_hand = True
            emit(codes.FWD)
            return _INNER
        loop.by_hand = True
        return enter(outputs)

    def done(entered) -> None:
        if entered is _INNER:
            emit(codes.FWD_END)
        else:
            leave(entered)

    return asked, done


def _functional_gradient(original, is_compiling):
    """`torch.func.grad` runs forward and backward in one call: what `func` takes is forward, all the rest is backward."""

    @like(original)
    def grad_and_value_impl(func, *args, **kwargs):
        global _functional
        if is_compiling() or loop.in_fwd or loop.in_bwd or loop.in_data or (loop.tid != get_ident() and not loop.latch(get_ident())):
            return original(func, *args, **kwargs)
        try:
            loop.latched = True
            loop.arrives()
            loop.loose_forward_begins(True)
        except Exception as error:
            swallow("functional gradient", error)
        loop.begin(codes.BWD)
        _functional += 1
        try:
            return original(_as_forward(func), *args, **kwargs)
        finally:
            _functional -= 1
            emit(codes.BWD_END)

    return grad_and_value_impl


def _as_forward(func):
    def forward(*args, **kwargs):
        emit(codes.FWD)
        try:
            return func(*args, **kwargs)
        finally:
            emit(codes.FWD_END)

    return forward


def _constructed(original):
    @like(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            loop.clock.constructed(self)
        except Exception as error:
            swallow("optimizer", error)

    return __init__


def _step(original, in_dynamo, is_compiling):
    @like(original)
    def step(*args, **kwargs):
        if in_dynamo() or loop.in_opt or not args or (loop.tid != get_ident() and not loop.latch(get_ident())):
            return original(*args, **kwargs)
        loop.latched = True
        optimizer = args[0]
        if loop.pending or loop.evaluating or loop.on_update_begin or not loop.started:
            if is_compiling():
                return original(*args, **kwargs)
            try:
                loop.arrives()
                loop.update_begins(optimizer)
            except Exception as error:
                swallow("update", error)
        loop.in_opt += 1
        loop.begin(24) if loop.began_ns else emit(24)  # codes.OPT, as a constant for speed
        if closures.bare:
            args, kwargs = closures.bracketed(args, kwargs)
        try:
            result = original(*args, **kwargs) if kwargs else original(*args)
        finally:
            loop.in_opt -= 1
            emit(25)
        if loop.clock.single == id(optimizer) and not loop.on_update:
            loop.mark_update()
        else:
            try:
                loop.update_ended(optimizer)
            except Exception as error:
                swallow("update", error)
        return result

    return step


def _scaler_step(original):
    """A step that the scaler skips (infinite gradients) is a step of the loop all the same."""

    @like(original)
    def step(self, optimizer, *args, **kwargs):
        if loop.tid != get_ident():
            return original(self, optimizer, *args, **kwargs)
        emit(codes.OPT)
        before = loop.pending
        try:
            return original(self, optimizer, *args, **kwargs)
        finally:
            emit(codes.OPT_END)
            if not before and not loop.pending and loop.clock.updated(optimizer):
                loop.mark_update()

    return step
