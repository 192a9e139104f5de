"""Short texts about tensors and modules, for people who read logs."""

import torch
from torch import nn

LEVELS = torch.tensor([0.01, 0.25, 0.5, 0.75, 0.99])


def of_tensor(value: torch.Tensor) -> str:
    return f"{tuple(value.shape)} mean {value.mean():+.4f} sd {value.std(correction=0):.4f}"


def of_weight(value: torch.Tensor) -> str:
    """Spread and conditioning of a weight."""
    value = value.detach()
    text = of_tensor(value) + " q " + " ".join(f"{q:+.3f}" for q in torch.quantile(value.flatten(), LEVELS).tolist())
    if value.dim() == 2 and min(value.shape) > 1:
        singular = torch.linalg.svdvals(value)
        text += f" top {singular[0]:.3f} stable rank {(singular.square().sum() / singular[0].square().clamp_min(1e-12)):.1f}"
    return text


def of_module(module: nn.Module) -> str:
    return "; ".join(f"{name} {of_weight(value)}" for name, value in module.named_parameters())
