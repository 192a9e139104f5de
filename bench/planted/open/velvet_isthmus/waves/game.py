"""One round: the critic moves, then the maker."""

from dataclasses import dataclass, field

import torch

from .pair import Pair, critic_loss, maker_loss


@dataclass
class Game:
    pair: Pair
    rate: float
    score: dict[str, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        adam = {"lr": self.rate, "betas": (0.5, 0.95), "fused": True}
        self.movers = {
            "critic": torch.optim.Adam(self.pair.critic.parameters(), **adam),
            "maker": torch.optim.Adam(self.pair.maker.parameters(), **adam),
        }

    def move(self, who: str, loss: torch.Tensor) -> None:
        loss.backward()
        self.movers[who].step()
        self.movers[who].zero_grad()
        self.score[who] = loss.detach()

    def round(self, real: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> None:
        self.move("critic", critic_loss(self.pair, real, first))
        self.pair.critic.requires_grad_(False)
        self.move("maker", maker_loss(self.pair, second))
        self.pair.critic.requires_grad_(True)
