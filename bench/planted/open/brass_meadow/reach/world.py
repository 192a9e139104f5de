"""Many planar arms at once, each to bring its tip to a goal."""

import math

import torch


class Arms:
    def __init__(self, arms: int, joints: int, seed: int) -> None:
        self.count, self.joints = arms, joints
        self.generator = torch.Generator().manual_seed(seed)
        self.links = torch.full((joints,), 1.0 / joints)
        self.reset()

    @property
    def features(self) -> int:
        return 3 * self.joints + 4

    def reset(self) -> torch.Tensor:
        self.angles = (torch.rand(self.count, self.joints, generator=self.generator) - 0.5) * math.pi
        self.speeds = torch.zeros(self.count, self.joints)
        turn = torch.rand(self.count, generator=self.generator) * 2 * math.pi
        far = 0.3 + 0.6 * torch.rand(self.count, generator=self.generator)
        self.goals = torch.stack([far * turn.cos(), far * turn.sin()], dim=1)
        return self.look()

    def tip(self) -> torch.Tensor:
        bend = self.angles.cumsum(dim=1)
        return torch.stack([(self.links * bend.cos()).sum(1), (self.links * bend.sin()).sum(1)], dim=1)

    def look(self) -> torch.Tensor:
        return torch.cat([self.angles.sin(), self.angles.cos(), self.speeds, self.goals, self.tip() - self.goals], dim=1)

    def move(self, torques: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.speeds = 0.8 * self.speeds + 0.2 * torques.clamp(-1, 1)
        self.angles = self.angles + 0.3 * self.speeds
        reward = -(self.tip() - self.goals).norm(dim=1) - 0.01 * torques.square().mean(dim=1)
        return self.look(), reward
