"""Hooks on everything that saves: torch.save, safetensors, distributed checkpoints; and on what gives a saved file its last name.

To replace a file by one that was just written may wait until its contents are on the disk, which takes as long as writing them.
"""

from __future__ import annotations

import collections
import contextlib
import inspect
import os
import time
from threading import get_ident

from .. import codes, imports
from ..environment import diagnose
from ..guard import swallow
from ..patches import like
from ..writer import emit, fact
from . import deciding
from .loop import loop

NEWEST = 8  # saved files that may still get another name


def install(torch) -> None:
    """Wrap torch.save now, the others when the program imports them."""
    for name in ("replace", "rename"):
        imports.exchange(os, name, _moving(getattr(os, name)))
    save = _saver(torch.save)
    torch.save = torch.serialization.save = save
    imports.after("safetensors.torch", lambda module: setattr(module, "save_file", _saver(module.save_file)))
    imports.after("torch.distributed.checkpoint.state_dict_saver", lambda module: setattr(module, "save", _saver(module.save)))
    if diagnose:
        loop.call_at(1, deciding.note_loop)


def saver_method(owner: object, name: str) -> None:
    """Wrap a framework's saving method `owner.name`, if it exists."""
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, _saver(original, method=True))


def given_to(original):
    """`f(args, kwargs)` gives the object and the target of a call of the saving function `original`, however they are handed over."""
    try:
        names = [name for name, each in inspect.signature(original).parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        names = []
    targets = {"f", "filename", "checkpoint_id"}
    place = next((index for index, name in enumerate(names) if name in targets), 1)

    def given(args, kwargs):
        obj = args[0] if args else kwargs.get(names[0]) if names else None
        named = next((kwargs[name] for name in targets if name in kwargs), None)
        return obj, args[place] if len(args) > place and named is None else named

    return given


def _saver(original, method: bool = False):
    """A framework's `method` saves by functions that tell for themselves; where none did, something was saved and nobody saw what."""
    given = given_to(original)

    @like(original)
    def save(*args, **kwargs):
        if loop.tid != get_ident() or not loop.started:
            return original(*args, **kwargs)
        obj = target = None
        told = _told.count
        try:
            loop.close_eval_if_training()
            if not method:
                obj, target = given(args, kwargs)
                _tell(obj, target)
        except Exception as error:
            swallow("checkpoint", error)
        _remember(target)
        began = time.monotonic_ns()
        loop.in_ckpt += 1
        _told.inside += not method
        emit(codes.CKPT)
        try:
            return original(*args, **kwargs)
        finally:
            loop.in_ckpt -= 1
            _told.inside -= not method
            emit(codes.CKPT + 1)
            if method and told == _told.count:
                _tell(None, None)
            if diagnose:
                _note(target, began, method)

    return save


def _moving(original):
    """`os.replace` and `os.rename`: of a file that was saved it is a part of the checkpoint."""

    @like(original)
    def move(*args, **kwargs):
        if _newest and loop.tid == get_ident() and _is_saved(args[0] if args else kwargs.get("src")):
            result = _as_checkpoint(original, args, kwargs)
        else:
            result = original(*args, **kwargs)
        if moved:
            _tell_moved(args, kwargs)
        return result

    return move


def _as_checkpoint(original, args, kwargs):
    began = time.monotonic_ns()
    emit(codes.CKPT)
    try:
        return original(*args, **kwargs)
    finally:
        emit(codes.CKPT + 1)
        if diagnose:
            fact("save_moved", t=began, ns=time.monotonic_ns() - began)


def _tell_moved(args, kwargs) -> None:
    try:
        source, target = [args[place] if len(args) > place else kwargs[name] for place, name in enumerate(("src", "dst"))]
        for each in moved:
            each(source, target)
    except Exception as error:
        swallow("rename", error)


moved: list = []  # each is called with the old and the new name of a file that got another name


def _remember(target: object) -> None:
    try:
        if isinstance(target, (str, os.PathLike)):
            _newest.append(os.path.abspath(target))
    except Exception as error:
        swallow("checkpoint", error)


def _is_saved(source: object) -> bool:
    try:
        return isinstance(source, (str, os.PathLike)) and os.path.abspath(source) in _newest
    except Exception as error:
        swallow("checkpoint", error)
        return False


_newest: collections.deque = collections.deque(maxlen=NEWEST)  # absolute paths of the files that were saved last


class _Told:
    """How many saves the observers were told of, and whether one runs whose parts are its own."""

    count = inside = 0


_told = _Told()


@contextlib.contextmanager
def one_save():
    """What the training thread saves in here are parts of one save that is told of otherwise."""
    mine = loop.tid == get_ident()
    _told.inside += mine
    try:
        yield
    finally:
        _told.inside -= mine


def _tell(obj: object, target: object) -> None:
    if loop.on_checkpoint and not _told.inside:
        _told.count += 1
        loop.tell(loop.on_checkpoint, obj, target)


def _note(target: object, began: int, method: bool) -> None:
    try:
        ended = time.monotonic_ns()
        fact("save", t=began, ns=ended - began, at=deciding.place(), bytes=_size(target), inner=loop.in_ckpt > 0, method=method)
    except Exception as error:
        swallow("checkpoint facts", error)


def _size(target: object):
    if isinstance(target, (str, os.PathLike)):
        return os.path.getsize(target) if os.path.exists(target) else None
    tell = getattr(target, "tell", None)
    try:
        return tell() if tell is not None else None
    except OSError:  # a member of an archive, a pipe
        return None
