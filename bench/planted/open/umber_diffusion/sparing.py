"""Decorators that trade time for memory."""

import functools
import os

from torch.utils.checkpoint import checkpoint


def spare(method):
    """Keeps a method's inputs only; what lies between is made again when its gradient is due."""
    if os.environ.get("PLANTED_FIX") == "1":
        return method

    @functools.wraps(method)
    def thrifty(self, *args):
        if not self.training:
            return method(self, *args)
        return checkpoint(functools.partial(method, self), *args, use_reentrant=False, preserve_rng_state=True)

    return thrifty
