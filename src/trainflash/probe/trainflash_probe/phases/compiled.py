"""Functions that the program hands to torch.compile: a call of one on the training thread is a forward, as a root module's is."""

from __future__ import annotations

import functools
from threading import get_ident

from .. import codes
from ..guard import swallow
from ..patches import like
from ..writer import emit
from . import gaps
from .loop import loop

on_call: list = []  # called with nothing, on each call of torch.compile


def install(torch) -> None:
    """Wrap torch.compile. What it returns for a function is bracketed; modules have their own hook."""
    original, module_class = torch.compile, torch.nn.Module

    @like(original)
    def compile(*args, **kwargs):
        gaps.give_up()
        loop.tell(on_call)
        result = original(*args, **kwargs)
        given = args[0] if args else kwargs.get("model")
        if given is None or isinstance(given, (type, module_class)) or result is given:
            return result  # a decorator, which calls torch.compile again; a class; a module; or compilation is switched off
        try:
            return _bracket(result, torch.compiler.is_compiling, torch.is_grad_enabled)
        except Exception as error:
            swallow("compile", error)
            return result

    torch.compile = compile


def _bracket(function, is_compiling, is_grad_enabled):
    @functools.wraps(function)
    def call(*args, **kwargs):
        if is_compiling() or loop.in_fwd or loop.in_opt or loop.in_bwd or loop.tid != get_ident() or not loop.started:
            return function(*args, **kwargs)
        if loop.pending or loop.evaluating:
            try:
                loop.loose_forward_begins(is_grad_enabled())
            except Exception as error:
                swallow("compiled function", error)
        loop.forwards += 1
        loop.in_fwd = True
        loop.begin(codes.FWD)
        try:
            return function(*args, **kwargs)
        finally:
            loop.in_fwd = False
            emit(codes.FWD_END)

    return call
