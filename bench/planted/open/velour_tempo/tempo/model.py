import torch
from torch import Tensor, nn


class DecayCell(nn.Module):
    """A gated cell whose memory fades by a learnt rate per unit."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gates = nn.Linear(inputs + hidden, 2 * hidden)
        self.fresh = nn.Linear(inputs + hidden, hidden)
        self.rate = nn.Parameter(torch.zeros(hidden))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        reset, update = self.gates(torch.cat([x, h], dim=-1)).sigmoid().chunk(2, dim=-1)
        new = torch.tanh(self.fresh(torch.cat([x, reset * h], dim=-1)))
        kept = h * torch.sigmoid(self.rate + 2)
        return kept + update * (new - kept)


class TempoNet(nn.Module):
    def __init__(self, bands: int, hidden: int, cells: int) -> None:
        super().__init__()
        self.cells = nn.ModuleList(DecayCell(bands if i == 0 else hidden, hidden) for i in range(cells))
        self.head = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, 1))

    def forward(self, x: Tensor) -> Tensor:
        for cell in self.cells:
            h = x.new_zeros(x.shape[0], cell.rate.numel())
            states = []
            for frame in x.unbind(1):
                h = cell(frame, h)
                states.append(h)
            x = torch.stack(states, dim=1)
        return self.head(x.mean(1)).squeeze(-1)
