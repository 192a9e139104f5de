"""One optimizer step from several parts."""

import os
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from .ranks import meeting

FIXED = os.environ.get("PLANTED_FIX") == "1"


def misfit(guess: torch.Tensor, speed: torch.Tensor) -> torch.Tensor:
    return nn.functional.huber_loss(guess, speed)


def gather_gradients(model: DistributedDataParallel, parts: Iterator, count: int) -> torch.Tensor:
    total = torch.zeros(())
    for number in range(count):
        surface, speed = next(parts)
        if FIXED:
            with meeting(model, last=number == count - 1):
                loss = misfit(model(surface), speed) / count
                loss.backward()
        else:
            guess = model(surface)
            loss = misfit(guess, speed) / count
            with meeting(model, last=number == count - 1):
                loss.backward()
        total += loss.detach()
    return total
