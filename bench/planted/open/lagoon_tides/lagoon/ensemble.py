"""An ensemble trained at once with torch.func."""

import copy

import torch
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from lagoon.forecaster import Forecaster


class Ensemble:
    def __init__(self, config):
        members = [Forecaster(config) for _ in range(config.members)]
        self.params, self.buffers = stack_module_state(members)
        self.params = {name: value.detach() for name, value in self.params.items()}
        self.skeleton = copy.deepcopy(members[0]).to("meta")
        self.first = {name: torch.zeros_like(value) for name, value in self.params.items()}
        self.rate = config.lr
        self.slopes = vmap(grad_and_value(self.loss), in_dims=(0, 0, 0, 0, None, None), randomness="different")

    def loss(self, params, buffers, levels, ahead, basis, fit):
        predicted = functional_call(self.skeleton, (params, buffers), (levels, basis, fit))
        return (predicted - ahead).square().mean()

    def update(self, levels, ahead, basis, fit) -> float:
        grads, losses = self.slopes(self.params, self.buffers, levels, ahead, basis, fit)
        names = list(self.params)
        first = [self.first[name] for name in names]
        torch._foreach_lerp_(first, [grads[name].sign() * grads[name].abs().sqrt() for name in names], 0.1)
        torch._foreach_add_([self.params[name] for name in names], first, alpha=-self.rate)
        return losses.mean().item()
