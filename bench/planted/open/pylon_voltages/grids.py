"""Random transmission grids with a linearised power flow as the answer."""

from dataclasses import dataclass

import torch


@dataclass
class Grid:
    bus: torch.Tensor  # (buses, 6): load, generation, and limits
    ends: torch.Tensor  # (2, lines)
    line: torch.Tensor  # (lines, 3): resistance, reactance, rating
    voltage: torch.Tensor
    angle: torch.Tensor
    loading: torch.Tensor
    losses: torch.Tensor


def draw_grid(buses, chords, g):
    ring = torch.arange(buses)
    ends = torch.stack([ring, (ring + 1) % buses])
    ends = torch.cat([ends, torch.randint(0, buses, (2, chords), generator=g)], dim=1)
    bus = torch.randn(buses, 6, generator=g)
    line = torch.rand(ends.shape[1], 3, generator=g) + 0.1
    y = 1.0 / line[:, 1]
    lap = torch.zeros(buses, buses)
    lap.index_put_((ends[0], ends[0]), y, accumulate=True)
    lap.index_put_((ends[1], ends[1]), y, accumulate=True)
    lap.index_put_((ends[0], ends[1]), -y, accumulate=True)
    lap.index_put_((ends[1], ends[0]), -y, accumulate=True)
    power = bus[:, 1] - bus[:, 0]
    angle = torch.linalg.solve(lap + torch.eye(buses), power)
    flow = (angle[ends[0]] - angle[ends[1]]) * y
    voltage = 1.0 + 0.1 * torch.tanh(bus[:, 2] + angle)
    return Grid(bus, ends, line, voltage, angle, flow.abs() / (1 + line[:, 2]), (flow.pow(2) * line[:, 0]).mean().view(1))


def join(grids):
    shift, ends = 0, []
    for grid in grids:
        ends.append(grid.ends + shift)
        shift += len(grid.bus)
    joined = Grid(
        *(
            torch.cat([getattr(g, f) for g in grids], dim=0) if f != "ends" else torch.cat(ends, dim=1)
            for f in ("bus", "ends", "line", "voltage", "angle", "loading", "losses")
        )
    )
    joined.owner = torch.repeat_interleave(torch.arange(len(grids)), torch.tensor([len(g.bus) for g in grids]))
    joined.count = len(grids)
    return joined
