import torch
from torch import nn


class Energy(nn.Module):
    """A learnt Hamiltonian; its symplectic gradient is the flow."""

    def __init__(self, width=256, depth=3):
        super().__init__()
        sizes = [4] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 1)

    def forward(self, state):
        h = state
        for layer in self.hidden:
            h = torch.tanh(layer(h))
        return self.out(h).squeeze(-1)

    def flow(self, state):
        state = state.detach().requires_grad_()
        (slope,) = torch.autograd.grad(self(state).sum(), state, create_graph=True)
        dq, dp = slope.chunk(2, dim=-1)
        return torch.cat([dp, -dq], dim=-1)
