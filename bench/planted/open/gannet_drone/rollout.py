from dataclasses import dataclass

import numpy as np
import torch

from policy import choose


@dataclass
class Rollout:
    seen: np.ndarray
    actions: torch.Tensor
    logs: torch.Tensor
    values: torch.Tensor
    rewards: np.ndarray
    lost: np.ndarray
    last_value: torch.Tensor


def collect(world, policy, seen, horizon: int):
    rows = {"seen": [], "actions": [], "logs": [], "values": [], "rewards": [], "lost": []}
    for _ in range(horizon):
        action, log, value = choose(policy, seen)
        rows["seen"].append(seen)
        seen, reward, lost = world.step(action)
        rows["actions"].append(torch.from_numpy(action))
        rows["logs"].append(log)
        rows["values"].append(value)
        rows["rewards"].append(reward)
        rows["lost"].append(lost)
    last = choose(policy, seen)[2]
    rollout = Rollout(
        np.stack(rows["seen"]),
        torch.stack(rows["actions"]),
        torch.stack(rows["logs"]),
        torch.stack(rows["values"]),
        np.stack(rows["rewards"]),
        np.stack(rows["lost"]),
        last,
    )
    return rollout, seen


def advantages(rollout: Rollout, rewards: torch.Tensor, gamma: float, lam: float) -> torch.Tensor:
    alive = 1.0 - torch.from_numpy(rollout.lost).float()
    out = torch.zeros_like(rewards)
    running, following = torch.zeros_like(rollout.last_value), rollout.last_value
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * following * alive[t] - rollout.values[t]
        running = delta + gamma * lam * alive[t] * running
        out[t], following = running, rollout.values[t]
    return out
