"""One round: the judge learns, then the carver."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Duel:
    carver: nn.Module
    judge: nn.Module
    latent: int
    rate: float

    def __post_init__(self) -> None:
        self.carver_step = torch.optim.Adam(self.carver.parameters(), self.rate, betas=(0.5, 0.9), fused=True)
        self.judge_step = torch.optim.Adam(self.judge.parameters(), self.rate, betas=(0.5, 0.9), fused=True)

    def teach_judge(self, real: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            false = self.carver(torch.randn(len(real), self.latent))
        for_real, for_false = self.judge(torch.cat([real, false])).chunk(2)
        loss = nn.functional.relu(1 - for_real).mean() + nn.functional.relu(1 + for_false).mean()
        self.judge_step.zero_grad()
        loss.backward()
        self.judge_step.step()
        return loss.detach()

    def teach_carver(self, count: int) -> torch.Tensor:
        self.judge.requires_grad_(False)
        loss = -self.judge(self.carver(torch.randn(count, self.latent))).mean()
        self.carver_step.zero_grad()
        loss.backward()
        self.carver_step.step()
        self.judge.requires_grad_(True)
        return loss.detach()
