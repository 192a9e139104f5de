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
    """Everything inside is phase `name` (Data, H2D, Fwd, Bwd, Opt, Eval, Ckpt, Log); other names mark nothing.

    A mark wins over what the probe sees by itself inside it; marks may nest, the inner one counts. Where neither an optimizer nor a
    backward is seen, the end of `phase("Opt")` completes a step, and the next `phase("Data")`, else the next other mark of a step,
    begins another.
    """
    if "trainflash_probe.boot" not in sys.modules:
        yield
        return
    from .phases import marks

    leave = marks.enter(name)
    try:
        yield
    finally:
        leave()


def _enter() -> None:
    """Nothing where our `sitecustomize` has run: it brought the finder that waits for torch, or that took its place."""
    ours = ("_UntilTorch", "_ByHand", "Watcher")
    entered = any(getattr(finder, "__name__", "") in ours for finder in sys.meta_path)
    if not entered and os.environ.get("TRAINFLASH_RUN"):
        from . import finders

        finders.enter()


_enter()
