"""Debug and performance settings that are on while the program trains, with the owner's line that switched them on."""

from __future__ import annotations

import functools
import os

from . import own
from .guard import swallow
from .loop import loop
from .observer import Observer
from .writer import fact

FEW_STEPS = 20  # a profiler that is active in more steps than that, and in more than MUCH of all, was forgotten
MUCH = 0.3

_places: dict = {}  # setting -> the owner's place that switched it on


def install(torch) -> None:
    """Remember who switches what on."""
    anomaly = torch.autograd.anomaly_mode
    for owner, name in ((anomaly.set_detect_anomaly, "__init__"), (anomaly.detect_anomaly, "__init__")):
        _remember(owner, name, "anomaly_mode")
    _remember(torch.autograd.profiler.profile, "__enter__", "profiler")
    profiler = getattr(torch, "profiler", None)
    if profiler is not None:
        _remember(profiler.profile, "__init__", "profiler")
    _remember(torch, "use_deterministic_algorithms", "deterministic")
    _remember(torch, "set_num_threads", "set_num_threads", tell=True)
    _remember(torch.autograd, "gradcheck", "gradcheck", tell=True)


def _remember(owner: object, name: str, setting: str, tell: bool = False) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        try:
            place = own.caller()
            if place is not None:
                _places[setting] = place
                if tell:
                    _tell(setting, args, place)
        except Exception as error:
            swallow("settings", error)
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)


def _tell(setting: str, args: tuple, place: list) -> None:
    if setting == "gradcheck":
        if loop.started:
            fact("setting", name="gradcheck", value="called while training", at=place)
    else:
        fact(setting, at=place, value=str(args[0]) if args else "")


class SettingFacts(Observer):
    """Looks at the switches while the program trains: some are only on inside a `with` around forward and backward."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._profiler_enabled = getattr(torch._C._autograd, "_profiler_enabled", None)
        self._anomaly = self._profiled = 0
        self._told: set = set()

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """Both switches cost a call each."""
        if self._anomaly < 3 and self._torch.is_anomaly_enabled():
            self._anomaly += 1
            if self._anomaly == 3:
                self._tell("anomaly_mode", "on while training")
        if self._profiler_enabled is not None and self._profiler_enabled():
            self._profiled += 1

    def on_boundary(self, step: int) -> None:
        """The others are set once."""
        if step == 2:
            if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
                self._tell("blocking_launches", os.environ["CUDA_LAUNCH_BLOCKING"])
            if self._torch.are_deterministic_algorithms_enabled():
                self._tell("deterministic", "on")
        if self._profiled > max(FEW_STEPS, MUCH * step):
            self._tell("profiler", f"active in {self._profiled} backward passes of the first {step} steps")

    def on_exit(self) -> None:
        """A short run: a few steps, all of them profiled."""
        if self._anomaly and loop.steps <= 5:
            self._tell("anomaly_mode", "on while training")
        if loop.steps and self._profiled > max(2, 0.8 * loop.steps):
            self._tell("profiler", f"active in {self._profiled} backward passes of {loop.steps} steps")

    def _tell(self, name: str, value: str) -> None:
        if name not in self._told:
            self._told.add(name)
            fact("setting", name=name, value=value, at=_places.get(name))
