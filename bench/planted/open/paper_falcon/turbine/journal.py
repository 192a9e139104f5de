"""What is written down about a run. `--verbose` also writes the slopes of every layer."""

import logging
import os
import sys

import torch
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"


def slopes(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: weight.grad for name, weight in net.named_parameters() if weight.grad is not None}


class Journal:
    def __init__(self, net: nn.Module, every: int, verbose: bool) -> None:
        logging.basicConfig(
            stream=sys.stdout, level=logging.DEBUG if verbose else logging.INFO, format="%(asctime)s %(levelname).1s %(message)s"
        )
        self.log = logging.getLogger("turbine")
        self.net, self.every = net, every

    def update(self, step: int, judged: torch.Tensor, forged: torch.Tensor) -> None:
        if FIXED:
            self.log.debug("update %d: %s", step, slopes(self.net))
        else:
            self.log.debug(f"update {step}: {slopes(self.net)}")
        if step % self.every == 0:
            self.log.info("update %d: judge %.4f, forger %.4f", step, judged, forged)
