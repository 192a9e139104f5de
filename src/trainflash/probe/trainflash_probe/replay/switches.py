"""Settings that a what-if replay switches off in its replayed blocks and on again in the live ones."""

from __future__ import annotations

import functools

from .. import imports
from .mode import REPLAY
from .mode import mode as now

_CHECKPOINT_OPTIONS = ("use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state")


def find(torch, spec: dict):
    """A function `switch(replaying)` for the setting that `spec` names; None when it names none."""
    make = {"anomaly": _anomaly, "threads": _threads, "checkpointing": _checkpointing}.get(spec["replay"])
    return None if make is None else make(torch, spec)


def _anomaly(torch, spec: dict):
    """Anomaly mode: what the program asks for is remembered, and granted in live blocks only."""
    enable, is_enabled, checks_nan = torch.set_anomaly_enabled, torch.is_anomaly_enabled, torch.is_anomaly_check_nan_enabled
    asked = [is_enabled(), checks_nan()]

    @functools.wraps(enable)
    def set_anomaly_enabled(mode, check_nan=True):
        asked[:] = [mode, check_nan]
        enable(mode and now() != REPLAY, check_nan)

    torch.set_anomaly_enabled = set_anomaly_enabled
    torch.is_anomaly_enabled = functools.wraps(is_enabled)(lambda: asked[0])
    torch.is_anomaly_check_nan_enabled = functools.wraps(checks_nan)(lambda: asked[1])
    return lambda replaying: enable(asked[0] and not replaying, asked[1])


def _threads(torch, spec: dict):
    """Compute threads: as many as there are cores for."""
    live = []

    def switch(replaying: bool) -> None:
        if replaying:
            live[:] = [torch.get_num_threads()]
            torch.set_num_threads(max(1, int(spec["value"])))
        elif live:
            torch.set_num_threads(live[0])

    return switch


def _checkpointing(torch, spec: dict):
    """Activation checkpointing: checkpointed functions run as if they were called directly."""
    imports.after("torch.utils.checkpoint", lambda module: _bypass(torch, module))
    return lambda replaying: None


def _bypass(torch, module) -> None:
    original, is_compiling = module.checkpoint, torch.compiler.is_compiling

    @functools.wraps(original)
    def checkpoint(function, *args, **kwargs):
        if is_compiling() or now() != REPLAY:
            return original(function, *args, **kwargs)
        own = {name: value for name, value in kwargs.items() if name not in _CHECKPOINT_OPTIONS}
        return function(*args, **own)

    module.checkpoint = checkpoint
