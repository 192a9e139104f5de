import torch


class Basins:
    """Many independent chains of five basins, a gate opening is chosen for the last one."""

    levels = 5

    def __init__(self, count, gates, generator):
        self.generator, self.gates = generator, gates
        self.level = torch.rand(count, self.levels, generator=generator)
        self.rain = torch.zeros(count)

    def observe(self):
        return torch.cat([self.level, self.level**2, self.rain[:, None]], dim=1)

    def step(self, gate):
        self.rain = 0.9 * self.rain + 0.1 * torch.rand(len(gate), generator=self.generator)
        flow = 0.2 * self.level
        flow[:, -1] = gate.float() / self.gates * self.level[:, -1]
        inflow = torch.cat([0.3 * self.rain[:, None], flow[:, :-1]], dim=1)
        self.level = (self.level - flow + inflow).clamp(0, 2)
        return -(self.level[:, -1] - 0.6).abs() - 0.1 * flow[:, -1]
