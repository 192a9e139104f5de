"""Training without state: parameters and moments are dicts that go in and come out."""

import torch
from torch import nn
from torch.func import functional_call, grad_and_value

Tree = dict[str, torch.Tensor]


def make_update(net: nn.Module, rate: float, momentum: float):
    def loss_of(params: Tree, spectra: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
        said = functional_call(net, params, (spectra,))
        return (said - leaf).square().mean()

    slope = grad_and_value(loss_of)

    def update(params: Tree, speed: Tree, spectra: torch.Tensor, leaf: torch.Tensor) -> tuple[Tree, Tree, torch.Tensor]:
        grads, loss = slope(params, spectra, leaf)
        names = list(params)
        fresh = torch._foreach_add(torch._foreach_mul([speed[n] for n in names], momentum), [grads[n] for n in names])
        moved = torch._foreach_add([params[n] for n in names], fresh, alpha=-rate)
        return dict(zip(names, moved)), dict(zip(names, fresh)), loss

    return update


def start(net: nn.Module, like: torch.Tensor) -> tuple[Tree, Tree]:
    params = {name: value.detach().to(like) for name, value in net.named_parameters()}
    return params, {name: torch.zeros_like(value) for name, value in params.items()}
