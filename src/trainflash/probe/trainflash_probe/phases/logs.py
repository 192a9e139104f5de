"""Hooks on what programs log with: print of the owner's lines, logging, progress bars, TensorBoard, W&B, pictures that are drawn."""

from __future__ import annotations

import builtins
import functools
import logging
import sys
import time
import types
from threading import get_ident

from .. import codes, imports, own
from ..environment import diagnose
from ..guard import swallow
from ..patches import like
from ..writer import emit
from .loop import loop
from .tally import Tally

_PROGRESS = ("refresh", "set_postfix", "set_postfix_str", "set_description", "set_description_str")

tally = Tally("logs", most=500)  # calls and nanoseconds of each source


def install(torch) -> None:
    """Wrap print and logging now, the others when the program imports them."""
    builtins.print = _print(builtins.print, torch.compiler.is_compiling)
    logger = logging.Logger
    logger.callHandlers = _inside_its_file(logger.callHandlers, "logging")
    if sys.version_info >= (3, 11):  # before, a given `stacklevel` counts every frame
        logger._log = _inside_its_file(logger._log, "logging")
    imports.after("tqdm.std", lambda module: _methods(module.tqdm, "progress", *_PROGRESS))
    imports.after("torch.utils.tensorboard.writer", _tensorboard)
    imports.after("wandb.sdk.wandb_run", lambda module: _methods(module.Run, "wandb", "log"))
    imports.after("matplotlib.figure", lambda module: _methods(module.Figure, "matplotlib", "savefig"))
    imports.after("matplotlib.pyplot", lambda module: _methods(module, "matplotlib", "pause", "show"))
    imports.after("matplotlib.backends.backend_agg", lambda module: _methods(module.FigureCanvasAgg, "matplotlib", "draw"))
    imports.after("rich.console", lambda module: _methods(module.Console, "rich", "print"))
    imports.after("torchvision.utils", lambda module: _methods(module, "torchvision", "save_image"))
    imports.after("mlflow.tracking.fluent", lambda module: _methods(module, "mlflow", "log_metric", "log_metrics", "log_artifact"))


def _tensorboard(module) -> None:
    writer = module.SummaryWriter
    _methods(writer, "tensorboard", *(name for name in dir(writer) if name.startswith("add_")), "flush")


def _methods(owner: object, source: str, *names: str) -> None:
    for name in names:
        original = getattr(owner, name, None)
        if callable(original):
            setattr(owner, name, logged(original, source))


def _inside_its_file(original, source: str):
    """`logged`, in frames that look like lines of `original`'s file: a logger names the nearest line outside of it as its caller."""
    file = original.__code__.co_filename
    return functools.wraps(original)(_moved(logged(original, source, _moved(_span, file)), file))


def _moved(function, file: str):
    code = function.__code__.replace(co_filename=file)
    return types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


def logged(original, source: str, span=None):
    """`original` as a span of Log, whoever calls it on the training thread."""
    span = span or _span

    @like(original)
    def log(*args, **kwargs):
        if loop.tid != get_ident() or loop.in_log or not loop.started:
            return original(*args, **kwargs)
        return span(original, source, args, kwargs)

    return log


def _print(original, is_compiling):
    @like(original)
    def print(*args, **kwargs):
        if is_compiling() or loop.tid != get_ident() or loop.in_log or not loop.started or not own.is_own(sys._getframe(1).f_code):
            return original(*args, **kwargs)
        return _span(original, "print", args, kwargs)

    return print


def _span(original, source: str, args: tuple, kwargs: dict):
    try:
        loop.close_eval_if_training()
        if loop.on_log:
            loop.tell(loop.on_log, source)
    except Exception as error:
        swallow("log", error)
    began = time.monotonic_ns()
    loop.in_log += 1
    emit(codes.LOG)
    try:
        return original(*args, **kwargs)
    finally:
        loop.in_log -= 1
        emit(codes.LOG + 1)
        if diagnose:
            _count(source, time.monotonic_ns() - began)


def _count(source: str, ns: int) -> None:
    try:
        frame = own.own_frame(sys._getframe(2))
        tally.add(None if frame is None else own.place_of_frame(frame), source, ns)
    except Exception as error:
        swallow("log facts", error)
