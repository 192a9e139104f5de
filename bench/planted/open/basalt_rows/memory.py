"""Saving memory in deep models."""

import os
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Lean(nn.Module):
    """Runs a module without keeping its activations, as far as the policy wants it."""

    policy: Callable[[nn.Module], bool] = staticmethod(lambda module: not FIXED)

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training and torch.is_grad_enabled() and self.policy(self.module):
            return checkpoint(self.module, x, use_reentrant=False)
        return self.module(x)


def lean(cls: type[nn.Module]) -> Callable[..., Lean]:
    """A decorator for the classes of parts."""

    def build(*args, **kwargs) -> Lean:
        return Lean(cls(*args, **kwargs))

    build.__name__ = cls.__name__
    return build


def resident_megabytes() -> float:
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
