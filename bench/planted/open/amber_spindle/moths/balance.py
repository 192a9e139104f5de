"""Weights against the long tail of species."""

import os

import torch
from torch.utils.data import Subset

FIXED = os.environ.get("PLANTED_FIX") == "1"


def tally(drawer: Subset) -> torch.Tensor:
    """How many specimens of each species are in the drawer."""
    if FIXED:
        names = drawer.dataset.species[torch.as_tensor(drawer.indices)]
    else:
        names = torch.stack([name for _, name in drawer])
    return torch.bincount(names, minlength=drawer.dataset.classes)


def effective_number(drawer: Subset, beta: float) -> torch.Tensor:
    """Class weights after Cui et al. (2019), with mean one."""
    weights = (1 - beta) / (1 - beta ** tally(drawer).clamp(min=1).double())
    return (weights / weights.mean()).float()
