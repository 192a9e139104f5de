"""Hooks on copies from host to device; not installed where there is no NVIDIA device, so that CPU programs pay nothing."""

from __future__ import annotations

import functools
import os
from threading import get_ident

from .. import codes
from ..writer import emit
from .loop import loop


def install(torch) -> None:
    """Wrap Tensor.to and Tensor.cuda if this machine has a CUDA device and torch can use it."""
    if torch.version.cuda is None or not any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")):
        return
    torch.Tensor.to = _to(torch.Tensor.to, torch.compiler.is_compiling, torch.device)
    torch.Tensor.cuda = _copy(torch.Tensor.cuda, torch.compiler.is_compiling)


def _copy(original, is_compiling):
    @functools.wraps(original)
    def cuda(self, *args, **kwargs):
        if is_compiling() or self.is_cuda or loop.tid != get_ident() or not loop.started:
            return original(self, *args, **kwargs)
        emit(codes.H2D)
        try:
            return original(self, *args, **kwargs)
        finally:
            emit(codes.H2D + 1)

    return cuda


def _to(original, is_compiling, device_class):
    @functools.wraps(original)
    def to(self, *args, **kwargs):
        if is_compiling() or self.is_cuda or loop.tid != get_ident() or not loop.started:
            return original(self, *args, **kwargs)
        target = kwargs.get("device", args[0] if args else None)
        if isinstance(target, device_class):
            on_device = target.type == "cuda"
        elif isinstance(target, str):
            on_device = target.startswith("cuda")
        else:
            on_device = type(target) is int or getattr(target, "is_cuda", False)
        if not on_device:
            return original(self, *args, **kwargs)
        emit(codes.H2D)
        try:
            return original(self, *args, **kwargs)
        finally:
            emit(codes.H2D + 1)

    return to
