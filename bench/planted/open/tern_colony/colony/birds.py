"""The members of the ensemble as one stack of parameters, and the pupil that learns from their mean."""

import torch
from torch import nn
from torch.func import functional_call, stack_module_state

from .flights import GUST, STATE


def member(width: int, depth: int) -> nn.Sequential:
    sizes = [STATE + GUST] + [width] * depth
    layers: list[nn.Module] = []
    for before, after in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, STATE))


class Ensemble:
    """Parameters of all members live in one dict; nothing is stored in a module."""

    def __init__(self, count: int, width: int, depth: int) -> None:
        members = [member(width, depth) for _ in range(count)]
        stacked, _ = stack_module_state(members)
        self.parameters = {name: tensor.detach() for name, tensor in stacked.items()}
        self.skeleton = member(width, depth).to("meta")

    def predict(self, parameters: dict[str, torch.Tensor], inputs: torch.Tensor) -> torch.Tensor:
        return functional_call(self.skeleton, parameters, (inputs,))

    def loss(self, parameters: dict[str, torch.Tensor], inputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.smooth_l1_loss(self.predict(parameters, inputs), target)


class Pupil(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = member(width, 2)
        self.doubt = nn.Linear(STATE + GUST, 1)

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.body(inputs), nn.functional.softplus(self.doubt(inputs)).squeeze(-1)
