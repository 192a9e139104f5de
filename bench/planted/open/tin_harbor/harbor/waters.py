"""Many small harbours at once: boats look for their berths."""

import torch

MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0], [0, 0]])


class Harbour:
    """A square of water with a current; one boat and one berth each."""

    def __init__(self, boats: int, size: int, generator: torch.Generator) -> None:
        self.boats, self.size, self.generator = boats, size, generator
        self.current = torch.randint(-1, 2, (size, size, 2), generator=generator)
        self.reset()

    @property
    def observation(self) -> torch.Tensor:
        way = (self.berth - self.boat) / self.size
        flow = self.current[self.boat[:, 0], self.boat[:, 1]]
        return torch.cat([self.boat / self.size, way, flow], -1)

    def reset(self) -> torch.Tensor:
        self.boat = torch.randint(self.size, (self.boats, 2), generator=self.generator)
        self.berth = torch.randint(self.size, (self.boats, 2), generator=self.generator)
        return self.observation

    def step(self, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        drift = torch.rand(self.boats, 1, generator=self.generator) < 0.2
        flow = self.current[self.boat[:, 0], self.boat[:, 1]] * drift
        before = (self.berth - self.boat).abs().sum(-1)
        self.boat = (self.boat + MOVES[action] + flow).clamp(0, self.size - 1)
        after = (self.berth - self.boat).abs().sum(-1)
        return self.observation, (before - after) * 0.1 + (after == 0).float()
