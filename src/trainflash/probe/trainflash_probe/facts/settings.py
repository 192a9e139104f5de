"""Debug and performance settings that are on while the program trains, with the owner's line that switched them on.

Told are settings that cost time while training. Left out on purpose, because they cost nothing then: TORCH_SHOW_CPP_STACKTRACES (acts
on an error), TORCH_LOGS of what is said once for each compilation, NCCL_DEBUG=WARN or VERSION, asyncio's debug mode, warnings filters,
PYTHONUNBUFFERED, faulthandler, `torch.autograd.graph` hooks (host code has its own finding).
"""

from __future__ import annotations

import functools
import os
import time

from .. import imports, own
from ..guard import swallow
from ..patches import like, noted
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from . import census, compiles
from .switches import interpreter, tracing, verbose

FEW_STEPS = 20  # a profiler that is active in more steps than that, and in more than MUCH of all, was forgotten
MUCH = 0.3
LOOK_AT = (8, 40)  # completed steps: what is on at both is no schedule of a few steps
EACH_UNTIL = 256  # completed steps; later one backward now and then stands for those since the one before

FOLLOWS = {"fill_uninitialized_memory": "deterministic"}  # a setting that another one brings along

_places: dict = {}  # setting -> the owner's place that switched it on
_spent = [0, 0]  # ns in a profiler's own calls; when the one that runs began


def install(torch) -> None:
    """Remember who switches what on."""
    anomaly = torch.autograd.anomaly_mode
    _remember(anomaly.set_detect_anomaly, "__init__", "anomaly_mode", mode=1)
    _remember(anomaly.detect_anomaly, "__init__", "anomaly_mode")
    autograd = torch.autograd.profiler
    for owner in (autograd.profile, autograd.emit_nvtx, autograd.emit_itt):
        _remember(owner, "__enter__", "profiler")
    profiler = getattr(torch, "profiler", None)
    if profiler is not None:
        _remember(profiler.profile, "__init__", "profiler")
        for name in ("step", "start", "stop"):
            _time_it(profiler.profile, name)
    _remember(torch, "use_deterministic_algorithms", "deterministic", mode=0)
    _remember(torch, "set_num_threads", "set_num_threads", tell=True)
    _remember(torch.autograd, "gradcheck", "gradcheck", tell=True)
    _remember(torch.autograd, "gradgradcheck", "gradcheck", tell=True)
    _remember(getattr(torch, "_logging", None), "set_logs", "verbose_logs")
    imports.after("tracemalloc", lambda module: _remember(module, "start", "tracemalloc"))
    imports.after("cProfile", lambda module: _remember_methods(module.Profile, "python_profiler", "enable", "runcall", "runctx"))
    for module, mode in (("torch.utils.flop_counter", "FlopCounterMode"), ("torch.utils._debug_mode", "DebugMode")):
        imports.after(module, lambda found, mode=mode: _remember(getattr(found, mode), "__enter__", "looking_mode"))
    imports.after("coverage", lambda module: _remember(module.Coverage, "start", "python_tracing"))
    imports.after("transformers.debug_utils", _underflow_overflow)
    imports.after("transformers.training_args", _training_arguments)
    imports.after("logging", lambda module: _remember(module, "basicConfig", "verbose_logging"))


def place_of(setting: str):
    """The owner's [file, line, function] that switched a setting on last; None where nobody was seen to."""
    return _places.get(setting)


def _remember_methods(owner: object, setting: str, *names: str) -> None:
    for name in names:
        _remember(owner, name, setting)


def _remember(owner: object, name: str, setting: str, tell: bool = False, mode: int | None = None) -> None:
    """`mode` is the position of the argument that says whether the call switches the setting on."""
    original = getattr(owner, name, None)
    if original is None:
        return

    def keep(place: list, *args) -> None:
        if mode is None or mode >= len(args) or args[mode]:
            _places[setting] = place
        if tell:
            _tell(setting, args, place)

    setattr(owner, name, noted(original, keep, source="settings"))


def _time_it(owner: object, name: str) -> None:
    """What a profiler does in its own calls, such as the end of each of its cycles, falls on no phase."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @like(original)
    def timed(*args, **kwargs):
        if _spent[1]:
            return original(*args, **kwargs)
        _spent[1] = began = time.monotonic_ns()
        try:
            return original(*args, **kwargs)
        finally:
            _spent[0] += time.monotonic_ns() - began
            _spent[1] = 0

    setattr(owner, name, timed)


def _tell(setting: str, args: tuple, place: list) -> None:
    if setting == "gradcheck":
        if loop.started:
            fact("setting", name="gradcheck", value="called while training", at=place)
    else:
        fact(setting, at=place, value=str(args[0]) if args else "")


def _underflow_overflow(module) -> None:
    """Hugging Face's debugger hooks every module and looks at every output."""
    original = module.DebugUnderflowOverflow.__init__

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        place = _places.get("underflow_overflow") or own.caller()
        fact("setting", name="underflow_overflow", value="looks at every output", at=place)

    module.DebugUnderflowOverflow.__init__ = __init__


def _training_arguments(module) -> None:
    """Where a trainer is told to use that debugger."""
    original = module.TrainingArguments.__post_init__

    @functools.wraps(original)
    def __post_init__(settings, *args, **kwargs):
        original(settings, *args, **kwargs)
        try:
            if any("underflow_overflow" in str(option).lower() for option in settings.debug):
                _places["underflow_overflow"] = own.caller()
        except Exception as error:
            swallow("settings", error)

    module.TrainingArguments.__post_init__ = __post_init__


class SettingFacts(Observer):
    """Looks at the switches while the program trains: some are only on inside a `with` around forward and backward."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._profiler_enabled = getattr(torch._C._autograd, "_profiler_enabled", None)
        self._anomaly = self._profiled = 0
        self._told: set = set()
        self._pending: dict = {}
        self._first: dict = {}
        self._from_ns = 0
        self._seen_to = EACH_UNTIL
        self._stands_for = 1  # steps that the next backward stands for

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """Both switches cost a call each."""
        if self._anomaly < 3 and self._torch.is_anomaly_enabled():
            self._anomaly += 1
            if self._anomaly == 3:
                self._tell("anomaly_mode", "on while training")
        if self._profiler_enabled is not None and self._profiler_enabled() and census.running is None:
            self._profiled += self._stands_for
        if loop.steps >= EACH_UNTIL:
            loop.remove(self.on_backward)

    def on_boundary(self, step: int) -> None:
        """The others are set once."""
        if step == 1:
            self._first = self._switches()
            self._from_ns, _spent[0] = time.monotonic_ns(), 0
        elif step == 2:
            self._set_once()
        elif step in LOOK_AT:
            self._look(last=step == LOOK_AT[-1])
        elif step > LOOK_AT[-1]:
            loop.remove(self.on_boundary)

    def on_interval(self, step: int) -> None:
        """What a profiler costs, and whether it is still active."""
        self._judge_profiler(step)
        self._write_time()
        if step > self._seen_to and self.on_backward not in loop.on_backward:
            self._stands_for, self._seen_to = step - self._seen_to, step
            loop.on_backward.append(self.on_backward)

    def _judge_profiler(self, step: int) -> None:
        if self._profiled > max(FEW_STEPS, MUCH * step):
            self._tell("profiler", f"active in {self._profiled} backward passes of the first {step} steps")

    def _write_time(self) -> None:
        if _spent[0] and self._from_ns:
            fact("aid_time", name="profiler", ns=_spent[0], of_ns=time.monotonic_ns() - self._from_ns)

    def _set_once(self) -> None:
        if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
            self._tell("blocking_launches", os.environ["CUDA_LAUNCH_BLOCKING"])
        if self._torch.are_deterministic_algorithms_enabled():
            self._tell("deterministic", "on")
            if getattr(self._torch.utils.deterministic, "fill_uninitialized_memory", False):
                self._tell("fill_uninitialized_memory", "every empty tensor is filled, because deterministic algorithms are on")
        for name, value in interpreter().items():
            self._tell(name, value)

    def _switches(self) -> dict:
        found = tracing()
        found.update(verbose(self._torch, compiles.source.used))
        return found

    def _look(self, last: bool) -> None:
        """What is on now and was on at the look before."""
        found = self._switches()
        if last:
            for name, value in found.items():
                if name in self._pending:
                    self._tell(name, value)
            self._pending = {}
        else:
            self._pending = found

    def on_exit(self) -> None:
        """A short run: a few steps, all of them profiled."""
        self._judge_profiler(loop.steps)
        self._write_time()
        if self._anomaly and loop.steps <= 5:
            self._tell("anomaly_mode", "on while training")
        if loop.steps and self._profiled > max(2, 0.8 * loop.steps):
            self._tell("profiler", f"active in {self._profiled} backward passes of {loop.steps} steps")
        for name, value in (self._pending if loop.steps >= LOOK_AT[0] else self._first).items():
            self._tell(name, value)

    def _tell(self, name: str, value: str) -> None:
        if name not in self._told:
            self._told.add(name)
            fact("setting", name=name, value=value, at=_places.get(FOLLOWS.get(name, name)))
