"""Several surrogates side by side, their weights stacked, each a residual perceptron."""

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap


class Surrogate(nn.Module):
    def __init__(self, inputs: int, width: int, depth: int, outputs: int) -> None:
        super().__init__()
        self.lift = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)) for _ in range(depth)
        )
        self.read = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.lift(x)
        for block in self.blocks:
            x = x + block(x)
        return self.read(x)


class Ensemble:
    def __init__(self, members: int, **sizes: int) -> None:
        nets = [Surrogate(**sizes) for _ in range(members)]
        self.weights, self.buffers = stack_module_state(nets)
        self.frame = Surrogate(**sizes).to("meta")
        self.losses = vmap(self.one_loss)

    def one_loss(self, weights: dict, buffers: dict, sections: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        guess = functional_call(self.frame, (weights, buffers), (sections,))
        return nn.functional.mse_loss(guess, answers)

    def __call__(self, sections: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        return self.losses(self.weights, self.buffers, sections, answers)
