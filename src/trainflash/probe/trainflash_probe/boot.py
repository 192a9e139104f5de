"""Installs the probe once torch is imported, and ends it in order."""

from __future__ import annotations

import atexit
import os
import sys
import types

from . import codes, seeding, tracing, writer
from .environment import capture, diagnose, directory
from .guard import counts, swallow
from .phases.loop import loop


def install(torch) -> None:
    """Install all hooks. A part that fails is counted and left out."""
    from .phases import checkpoints, compiled, data, engine, fetches, frameworks, logs, losses, modules, told_updates, transfers, unseen

    _try("seeding", lambda: seeding.install(torch))
    for part in (engine, modules, compiled, losses, data, fetches, checkpoints, logs, transfers, unseen):
        _try(part.__name__, lambda part=part: part.install(torch))
    _try("frameworks", frameworks.install)
    _try("told updates", told_updates.install)
    if capture != "fidelity":
        _try("gaps", lambda: _gaps(torch))
    if diagnose:
        from .facts import collect

        _try("facts", lambda: collect.install(torch))
        _observe("device", lambda: _device(torch))
    _observe("pace", _pacer)
    _observe("record", _recorder)
    _observe("variation", lambda: _variation(torch))
    _observe("work", _work)
    _observe("profiler", lambda: _profiler(torch))
    _observe("limits", _limits)
    _observe("replay", lambda: _replayer(torch))
    _try("dynamo", lambda: _hide_from_dynamo(torch._C._dynamo.eval_frame))
    os.register_at_fork(after_in_child=_after_fork)
    atexit.register(_at_exit)
    writer.notice(f"torch {torch.__version__}")


def _try(place: str, action):
    try:
        return action()
    except Exception as error:
        swallow(f"install {place}", error)
        return None


def _observe(place: str, make) -> None:
    observer = _try(place, make)
    if observer is not None:
        loop.add(observer)


def _gaps(torch):
    from .phases import acting, gaps

    gaps.install(torch)
    acting.install()


def _device(torch):
    from .phases import device

    return device.watch(torch)


def _hide_from_dynamo(eval_frame) -> None:
    """A signal or a hook may run us inside a compiled region, where Dynamo would compile every function that it meets.

    What these modules call is never the program's, so there not even that is looked at; a hook's own frame is passed over alone.
    """
    alone, with_calls = _skippers(eval_frame)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "trainflash_probe":
            skip = with_calls if name.partition(".")[2] in ("guard", "own", "process", "record.ran", "runqueue", "writer") else alone
            for code in _codes_of(vars(module).values(), name):
                skip(code)


def _skippers(eval_frame) -> tuple:
    if hasattr(eval_frame, "skip_code"):  # older torch
        return eval_frame.skip_code, getattr(eval_frame, "skip_code_recursive", eval_frame.skip_code)
    action, strategy = eval_frame._FrameAction, eval_frame._FrameExecStrategy
    alone, with_calls = strategy(action.SKIP, action.DEFAULT), strategy(action.SKIP, action.SKIP)
    return (
        lambda code: eval_frame.set_code_exec_strategy(code, alone),
        lambda code: eval_frame.set_code_exec_strategy(code, with_calls),
    )


def _codes_of(values, module: str):
    todo = [value for value in values if getattr(value, "__module__", None) == module]
    while todo:
        value = todo.pop()
        if isinstance(value, type):
            todo += [getattr(method, "fget", None) or getattr(method, "__func__", method) for method in vars(value).values()]
            continue
        code = value if isinstance(value, types.CodeType) else getattr(value, "__code__", None)
        if isinstance(code, types.CodeType):
            yield code
            todo += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def _pacer():
    if not os.environ.get("TRAINFLASH_PACE"):
        return None
    from .pace import Pacer

    return Pacer(os.environ["TRAINFLASH_PACE"])


def _recorder():
    if capture != "fidelity":
        return None
    from .record.recorder import Recorder

    return Recorder(directory)


def _work():
    if capture not in ("timing", "fidelity"):
        return None
    from .record.work import Work

    return Work(directory)


def _variation(torch):
    if capture != "fidelity":
        return None
    from .record import variation

    vary = variation.wanted()
    return variation.OrderVariation(torch, vary[1]) if vary and vary[0] == "order" else None


def _replayer(torch):
    if not os.environ.get("TRAINFLASH_REPLAY"):
        return None
    from .replay import replayer

    return replayer.observer(torch)


def _profiler(torch):
    if not os.environ.get("TRAINFLASH_PROFILE"):
        return None
    from . import profiler

    return profiler.observer(torch)


def _limits():
    if not (os.environ.get("TRAINFLASH_MAX_STEPS") or os.environ.get("TRAINFLASH_MAX_SECONDS")):
        return None
    from .limits import Limits

    limits = Limits()
    return limits if limits.wanted else None


def _after_fork() -> None:
    try:
        tracing.after_fork()
        writer.after_fork()
        loop.after_fork()
        for name in ("facts.lines", "facts.calls", "phases.device"):
            part = sys.modules.get(f"trainflash_probe.{name}")
            if part is not None:
                part.after_fork()
    except Exception as error:
        swallow("fork", error)


def _at_exit() -> None:
    if not writer.is_open():
        return
    if loop.evaluation is not None:
        loop.end_evaluation_facts()
    loop.tell(loop.on_exit)
    writer.emit(codes.EXIT)
    swallowed = counts()
    if swallowed:
        writer.fact("swallowed", places=swallowed)
    for name in ("peaks", "call_trials"):
        part = sys.modules.get(f"trainflash_probe.facts.{name}")
        if part is not None:
            part.tell()
