"""A ferry and its queue, many harbours at once. Each minute: wait or sail."""

import torch


class Harbours:
    def __init__(self, count: int, seed: int):
        self.count = count
        self.g = torch.Generator().manual_seed(seed)
        self.cars = torch.zeros(count)
        self.away = torch.zeros(count)
        self.hour = torch.rand(count, generator=self.g) * 24

    def view(self) -> torch.Tensor:
        angle = self.hour * (6.2832 / 24)
        return torch.stack(
            [self.cars / 20, self.away / 15, angle.sin(), angle.cos(), (self.cars > 24).float(), (self.away == 0).float()], 1
        )

    def step(self, sail: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rate = 0.7 + 0.6 * torch.sin(self.hour * (6.2832 / 24))
        self.cars += torch.poisson(rate.clamp(min=0.05), generator=self.g)
        here = self.away == 0
        leaves = here & (sail == 1)
        carried = torch.where(leaves, self.cars.clamp(max=24), torch.zeros(()))
        self.cars = self.cars - carried
        self.away = torch.where(leaves, torch.full((), 15.0), (self.away - 1).clamp(min=0))
        self.hour = (self.hour + 1 / 60) % 24
        reward = 0.1 * carried - 0.02 * self.cars - 0.5 * leaves.float()
        done = torch.rand(self.count, generator=self.g) < 0.004
        self.cars = torch.where(done, torch.zeros(()), self.cars)
        return reward, done
