"""Actor, critic, and a clipped update."""

import numpy as np
import torch
from torch import nn

from .rollout import Layers, Season
from .world import BEDS, SEEN


def tower(width: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(SEEN, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, out))


class Gardener:
    def __init__(self, width: int, rate: float, passes: int, discount: float = 0.97, clip: float = 0.2) -> None:
        self.actor, self.critic = tower(width, BEDS + 1), tower(width, 1)
        self.passes, self.discount, self.clip = passes, discount, clip
        both = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(both, rate, fused=True)

    def layers(self) -> Layers:
        linear = [layer for layer in self.actor if isinstance(layer, nn.Linear)]
        return Layers([x.weight.detach().numpy() for x in linear], [x.bias.detach().numpy() for x in linear])

    def _returns(self, rewards: np.ndarray) -> np.ndarray:
        """Discounted sums from the end; rewards [season, hour]."""
        total, out = np.zeros(len(rewards), np.float32), np.empty_like(rewards)
        for hour in range(rewards.shape[1] - 1, -1, -1):
            total = rewards[:, hour] + self.discount * total
            out[:, hour] = total
        return out

    def learn(self, seasons: list[Season]) -> tuple[float, float]:
        seen = torch.from_numpy(np.concatenate([season.seen for season in seasons]))
        valves = torch.from_numpy(np.concatenate([season.valves for season in seasons]))
        rewards = np.stack([season.rewards for season in seasons])
        returns = torch.from_numpy(self._returns(rewards)).flatten()
        with torch.no_grad():
            before = self.actor(seen).log_softmax(-1).gather(1, valves[:, None])[:, 0]
            gain = returns - self.critic(seen)[:, 0]
            gain = (gain - gain.mean()) / (gain.std() + 1e-6)
        for _ in range(self.passes):
            chances = self.actor(seen).log_softmax(-1)
            ratio = (chances.gather(1, valves[:, None])[:, 0] - before).exp()
            bounded = ratio.clamp(1 - self.clip, 1 + self.clip)
            entropy = -(chances.exp() * chances).sum(-1).mean()
            worth = nn.functional.smooth_l1_loss(self.critic(seen)[:, 0], returns)
            loss = -torch.min(ratio * gain, bounded * gain).mean() + 0.5 * worth - 0.01 * entropy
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        return loss.item(), float(rewards.mean())
