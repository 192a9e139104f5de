"""Update rules on dictionaries of tensors: nothing here is changed in place."""

import torch

Weights = dict[str, torch.Tensor]


def total_norm(grads: Weights) -> torch.Tensor:
    return torch.stack([grad.norm() for grad in grads.values()]).norm()


def clipped(grads: Weights, norm: torch.Tensor, most: float) -> Weights:
    factor = (most / (norm + 1e-6)).clamp_max(1.0)
    return {name: grad * factor for name, grad in grads.items()}


def sign_step(weights: Weights, motion: Weights, grads: Weights, lr: float, beta: float, weight_decay: float) -> tuple[Weights, Weights]:
    """The sign of the smoothed gradient, with weight decay for the matrices."""
    motion = {name: torch.lerp(grads[name], motion[name], beta) for name in weights}
    after = {}
    for name, value in weights.items():
        decay = lr * weight_decay if value.dim() > 1 else 0.0
        after[name] = torch.sub(value * (1 - decay), motion[name].sign(), alpha=lr)
    return after, motion


def blend(slow: Weights, fast: Weights, keep: float) -> Weights:
    return {name: torch.lerp(fast[name], slow[name], keep) for name in slow}
