"""Brackets around functions of libraries: one phase each, on the training thread only."""

from __future__ import annotations

import functools
from threading import get_ident

from .. import codes
from ..guard import swallow
from ..writer import emit
from .loop import loop


def bracket(owner: object, name: str, phase: str) -> None:
    """Wrap `owner.name` so that its calls are one span of `phase`; nothing where `owner` has no such function."""
    original = getattr(owner, name, None)
    if original is None:
        return
    wrapped = {"Data": data_span, "Eval": evaluation_span}.get(phase, _plain)(original, phase)
    setattr(owner, name, functools.wraps(original)(wrapped))


def _plain(original, phase: str):
    code = codes.FIRST_PHASE + 2 * codes.PHASES.index(phase)

    def call(*args, **kwargs):
        if loop.tid != get_ident() or not loop.started:
            return original(*args, **kwargs)
        emit(code)
        try:
            return original(*args, **kwargs)
        finally:
            emit(code + 1)

    return call


def data_span(original, phase: str = "Data"):
    """Data that a function of its own makes: a call begins a step as a fetch does."""

    def call(*args, **kwargs):
        if loop.tid != get_ident() or loop.in_data or loop.in_fwd:
            return original(*args, **kwargs)
        try:
            loop.fetch_begins(0, -1)
        except Exception as error:
            swallow("data function", error)
        loop.begin(codes.DATA)
        loop.in_fwd = True  # forwards in it make data
        around = loop.around_data
        try:
            batch = original(*args, **kwargs) if around is None else around(original, args, kwargs)
        finally:
            loop.in_fwd = False
            emit(codes.DATA_END)
        if loop.on_batch:
            loop.batch_from = original
            loop.tell(loop.on_batch, -1, batch, "eval" if loop.evaluating or loop.eval_depth else "train")
            loop.batch_from = None
        return batch

    return call


def evaluation_span(original, phase: str = "Eval"):
    """An evaluation with a bracket of its own: `.eval()` and forwards inside it open no other."""

    def call(*args, **kwargs):
        if loop.tid != get_ident() or not loop.started:
            return original(*args, **kwargs)
        enter_evaluation()
        try:
            return original(*args, **kwargs)
        finally:
            leave_evaluation()

    return call


def enter_evaluation() -> None:
    """Begin a bracketed evaluation."""
    try:
        if loop.evaluating:
            loop.close_eval()
        if loop.eval_depth == 0 and not loop.evaluating:
            loop.begin_evaluation_facts()
            loop.tell(loop.on_eval, True)
    except Exception as error:
        swallow("evaluation", error)
    loop.eval_depth += 1
    emit(codes.EVAL)


def leave_evaluation() -> None:
    """End it."""
    loop.eval_depth -= 1
    emit(codes.EVAL_END)
    try:
        if loop.eval_depth == 0 and not loop.evaluating:
            loop.end_evaluation_facts()
            loop.tell(loop.on_eval, False)
    except Exception as error:
        swallow("evaluation", error)


class _Batches:
    """An iterator whose every item is a span of Data."""

    def __init__(self, iterator) -> None:
        self._iterator = iterator

    def __iter__(self):
        return self

    def __next__(self):
        if loop.tid != get_ident() or loop.in_data or loop.in_fwd:
            return next(self._iterator)
        try:
            loop.fetch_begins(0, -1)
        except Exception as error:
            swallow("batches", error)
        loop.begin(codes.DATA)
        try:
            return next(self._iterator)
        finally:
            emit(codes.DATA_END)

    def __getattr__(self, name):
        return getattr(self._iterator, name)


def each_batch(owner: object) -> None:
    """Wrap `owner.__iter__`, which returns a generator: a library's loader that works around the batches of a DataLoader."""
    original = owner.__iter__

    @functools.wraps(original)
    def __iter__(self):
        return _Batches(original(self))

    owner.__iter__ = __iter__
