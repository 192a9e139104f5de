"""The losses that gradient scalers scaled, as they were before."""

from __future__ import annotations

import functools
import weakref

from ..objects import is_tensor
from ..phases.loop import loop


def watch(torch):
    """`{id of a tensor that a scaler made: (weak reference to it, the unscaled loss it was made from)}`, as it fills."""
    scaled: dict = {}
    scaler = getattr(torch.amp, "GradScaler", None)
    scale = getattr(scaler, "scale", None)
    if scale is None:
        return scaled

    @functools.wraps(scale)
    def watched(this, outputs):
        result = scale(this, outputs)
        if is_tensor(outputs) and result is not outputs:
            with loop.unseen():
                scaled[id(result)] = (weakref.ref(result), outputs.detach())
        return result

    watched.__wrapped__ = scale
    scaler.scale = watched
    return scaled
