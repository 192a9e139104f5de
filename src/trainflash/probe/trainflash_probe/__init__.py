"""The probe inside the user's process. Owners may mark phases by hand; the module exists only under the probe:

try:
    from trainflash_probe import phase
except ImportError:
    from contextlib import nullcontext as phase

Where PYTHONPATH does not reach the program (`python -I`, a launcher that resets it), this lets the probe in:

import os, sys; sys.path.append(os.environ["TRAINFLASH_PROBE"]); import trainflash_probe
"""

from __future__ import annotations

import contextlib
import os
import sys


@contextlib.contextmanager
def phase(name: str):
    """Everything inside is phase `name` (Data, H2D, Fwd, Bwd, Opt, Eval, Ckpt, Log); other names mark nothing."""
    boot = sys.modules.get("trainflash_probe.boot")
    if boot is None or name not in ("Data", "H2D", "Fwd", "Bwd", "Opt", "Eval", "Ckpt", "Log"):
        yield
        return
    from threading import get_ident

    from . import codes, spans
    from .loop import loop
    from .writer import emit

    if loop.tid != get_ident():
        yield
    elif name == "Eval":
        spans.enter_evaluation()
        try:
            yield
        finally:
            spans.leave_evaluation()
    else:
        if name == "Data":
            loop.fetch_begins(0, -1)
        code = codes.FIRST_PHASE + 2 * codes.PHASES.index(name)
        emit(code)
        try:
            yield
        finally:
            emit(code + 1)


def _enter() -> None:
    """Nothing where our `sitecustomize` has run: it brought the finder that waits for torch, or that took its place."""
    ours = ("_UntilTorch", "_ByHand", "_Watcher")
    entered = any(getattr(finder, "__name__", "") in ours for finder in sys.meta_path)
    if not entered and os.environ.get("TRAINFLASH_RUN"):
        from . import imports

        imports.enter()


_enter()
