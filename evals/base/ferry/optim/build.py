"""The optimizer: weight decay for matrices only."""

from __future__ import annotations

import torch
from torch import nn

from ferry.config import OptimConfig


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    decayed, plain = [], []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        (decayed if parameter.dim() > 1 and "embed" not in name else plain).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


def build_optimizer(model: nn.Module, config: OptimConfig) -> torch.optim.Optimizer:
    groups = parameter_groups(model, config.weight_decay)
    if config.name == "adamw":
        return torch.optim.AdamW(groups, lr=config.lr, betas=(0.9, 0.98))
    if config.name == "sgd":
        return torch.optim.SGD(groups, lr=config.lr, momentum=0.9, nesterov=True)
    raise ValueError(f"no optimizer is called {config.name!r}")
