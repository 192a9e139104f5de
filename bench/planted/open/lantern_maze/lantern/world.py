"""Many mazes side by side, stepped together as tensors."""

import torch

MOVES = torch.tensor([[-1, 0], [1, 0], [0, -1], [0, 1]])


class Mazes:
    """State: where the walker and the lantern are in each maze. A maze that ends is dealt again at once."""

    def __init__(self, mazes: int, side: int, walls: float, patience: int, rng: torch.Generator) -> None:
        self.count, self.side, self.patience, self.rng = mazes, side, patience, rng
        self.every = torch.arange(mazes)
        self.walls = torch.rand(mazes, side, side, generator=rng) < walls
        self.walker = self._places(mazes)
        self.lantern = self._places(mazes)
        self.age = torch.zeros(mazes, dtype=torch.long)

    @property
    def features(self) -> int:
        return 3 * self.side * self.side

    def _places(self, count: int) -> torch.Tensor:
        return torch.randint(self.side, (count, 2), generator=self.rng)

    def _distance(self) -> torch.Tensor:
        return (self.walker - self.lantern).abs().sum(dim=1)

    def observe(self) -> torch.Tensor:
        planes = torch.zeros(self.count, 3, self.side, self.side)
        planes[:, 0] = self.walls
        planes[self.every, 1, self.walker[:, 0], self.walker[:, 1]] = 1.0
        planes[self.every, 2, self.lantern[:, 0], self.lantern[:, 1]] = 1.0
        return planes.flatten(1)

    def step(self, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = self._distance()
        target = (self.walker + MOVES[action]).clamp(0, self.side - 1)
        blocked = self.walls[self.every, target[:, 0], target[:, 1]]
        self.walker = torch.where(blocked[:, None], self.walker, target)
        self.age += 1
        found = (self.walker == self.lantern).all(dim=1)
        over = found | (self.age >= self.patience)
        reward = found.float() + 0.05 * (before - self._distance()) - 0.01
        fresh_walker, fresh_lantern = self._places(self.count), self._places(self.count)
        self.walker = torch.where(over[:, None], fresh_walker, self.walker)
        self.lantern = torch.where(over[:, None], fresh_lantern, self.lantern)
        self.age = torch.where(over, 0, self.age)
        return reward, over
