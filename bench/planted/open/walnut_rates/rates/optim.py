import os

import torch
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"


def make_optimizer(name: str, model: nn.Module, lr: float, decay: float) -> torch.optim.Optimizer:
    if name == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=decay, fused=FIXED)
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=lr, weight_decay=decay, momentum=0.9)
    raise ValueError(f"unknown optimizer {name!r}")
