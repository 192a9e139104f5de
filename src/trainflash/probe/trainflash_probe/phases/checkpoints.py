"""Hooks on everything that saves: torch.save, safetensors, distributed checkpoints."""

from __future__ import annotations

import functools
import os
import time
from threading import get_ident

from .. import codes, imports, own
from ..environment import diagnose
from ..guard import swallow
from ..writer import emit, fact
from .loop import loop


def install(torch) -> None:
    """Wrap torch.save now, the others when the program imports them."""
    save = _saver(torch.save)
    torch.save = torch.serialization.save = save
    imports.after("safetensors.torch", lambda module: setattr(module, "save_file", _saver(module.save_file)))
    imports.after("torch.distributed.checkpoint.state_dict_saver", lambda module: setattr(module, "save", _saver(module.save)))


def saver_method(owner: object, name: str) -> None:
    """Wrap a framework's saving method `owner.name`, if it exists."""
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, _saver(original, method=True))


def _saver(original, method: bool = False):
    @functools.wraps(original)
    def save(*args, **kwargs):
        if loop.tid != get_ident() or not loop.started:
            return original(*args, **kwargs)
        target = None
        try:
            loop.close_eval_if_training()
            target = None if method else kwargs.get("f", kwargs.get("filename", args[1] if len(args) > 1 else None))
            if loop.on_checkpoint and not loop.in_ckpt:
                loop.tell(loop.on_checkpoint, args[0] if args else None, target)
        except Exception as error:
            swallow("checkpoint", error)
        began = time.monotonic_ns()
        loop.in_ckpt += 1
        emit(codes.CKPT)
        try:
            return original(*args, **kwargs)
        finally:
            loop.in_ckpt -= 1
            emit(codes.CKPT + 1)
            if diagnose:
                _note(target, began, method)

    return save


def _note(target: object, began: int, method: bool) -> None:
    try:
        ended = time.monotonic_ns()
        fact("save", t=began, ns=ended - began, at=own.caller(), bytes=_size(target), inner=loop.in_ckpt > 0, method=method)
    except Exception as error:
        swallow("checkpoint facts", error)


def _size(target: object):
    if isinstance(target, (str, os.PathLike)):
        return os.path.getsize(target) if os.path.exists(target) else None
    tell = getattr(target, "tell", None)
    return tell() if tell is not None else None
