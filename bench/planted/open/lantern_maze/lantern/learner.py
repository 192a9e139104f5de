"""Clipped policy gradients over short rollouts."""

import logging
import os
from dataclasses import dataclass

import torch
from torch import nn

from . import portrait
from .policy import Policy
from .world import Mazes

FIXED = os.environ.get("PLANTED_FIX") == "1"
log = logging.getLogger(__name__)


@dataclass
class Rollout:
    seen: torch.Tensor
    action: torch.Tensor
    log_chance: torch.Tensor
    gain: torch.Tensor
    target: torch.Tensor
    reward: float
    ended: int


class Learner:
    def __init__(
        self, policy: Policy, mazes: Mazes, rng: torch.Generator, *, horizon: int, epochs: int, discount: float, trace: float,
        clip: float, entropy: float, lr: float, max_norm: float,
    ) -> None:  # fmt: skip
        self.policy, self.mazes, self.rng = policy, mazes, rng
        self.horizon, self.epochs, self.discount, self.trace = horizon, epochs, discount, trace
        self.clip, self.entropy, self.max_norm = clip, entropy, max_norm
        self.optimizer = torch.optim.Adam(policy.parameters(), lr)
        self.updates = 0

    @torch.no_grad()
    def walk(self) -> Rollout:
        """Walk through all mazes for a while, and judge the walk backwards."""
        log.debug("walk %d", self.updates)
        seen, actions, chances, values, rewards, overs = [], [], [], [], [], []
        for _ in range(self.horizon):
            view = self.mazes.observe()
            log_chance, value = self.policy(view)
            action = torch.multinomial(log_chance.exp(), 1, generator=self.rng)
            reward, over = self.mazes.step(action.squeeze(1))
            seen.append(view)
            actions.append(action)
            chances.append(log_chance.gather(1, action))
            values.append(value)
            rewards.append(reward)
            overs.append(over.float())
        values.append(self.policy(self.mazes.observe())[1])
        gains, running = [], torch.zeros(self.mazes.count)
        for t in reversed(range(self.horizon)):
            stays = 1.0 - overs[t]
            surprise = rewards[t] + self.discount * stays * values[t + 1] - values[t]
            running = surprise + self.discount * self.trace * stays * running
            gains.append(running)
        gain = torch.stack(gains[::-1])
        target = gain + torch.stack(values[:-1])
        return Rollout(
            torch.cat(seen), torch.cat(actions), torch.cat(chances).squeeze(1), gain.flatten(), target.flatten(),
            float(torch.stack(rewards).mean()), int(torch.stack(overs).sum()),
        )  # fmt: skip

    def _loss(self, rollout: Rollout) -> torch.Tensor:
        log_chance, value = self.policy(rollout.seen)
        ratio = (log_chance.gather(1, rollout.action).squeeze(1) - rollout.log_chance).exp()
        gain = (rollout.gain - rollout.gain.mean()) / (rollout.gain.std() + 1e-6)
        bounded = ratio.clamp(1 - self.clip, 1 + self.clip)
        actor = -torch.minimum(ratio * gain, bounded * gain).mean()
        critic = nn.functional.smooth_l1_loss(value, rollout.target)
        spread = -(log_chance.exp() * log_chance).sum(dim=-1).mean()
        return actor + 0.5 * critic - self.entropy * spread

    def update(self) -> dict[str, float]:
        rollout = self.walk()
        for epoch in range(self.epochs):
            loss = self._loss(rollout)
            self.optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_norm)
            self.optimizer.step()
            if FIXED:
                if not log.isEnabledFor(logging.DEBUG):
                    continue
            log.debug("update %d.%d: norm %.3f: %s", self.updates, epoch, norm, portrait.of_module(self.policy))
        self.updates += 1
        return {"loss": loss.item(), "norm": norm.item(), "reward": rollout.reward, "ended": rollout.ended}
