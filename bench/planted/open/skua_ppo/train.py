"""PPO on the swell; one step is a rollout and its updates."""

import collections
import json
import os
import time
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.distributions import Categorical

from sea import ACTIONS, OBS, Swell
from storage import Rollout


@dataclass
class Settings:
    gliders: int = 112
    horizon: int = 24
    epochs: int = 2
    minibatch: int = 1344
    clip: float = 0.2
    entropy: float = 0.01
    lr: float = 5e-4
    updates: int = int(os.environ.get("PLANTED_STEPS", 3000))


class Agent(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.policy, self.critic = nn.Linear(width, ACTIONS), nn.Linear(width, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.policy(h), validate_args=False), self.critic(h).squeeze(-1)


class Normaliser:
    """Running mean and spread of observations."""

    def __init__(self, size):
        self.mean, self.var, self.count = torch.zeros(size), torch.ones(size), 1e-4

    def __call__(self, obs):
        n = len(obs)
        delta = obs.mean(0) - self.mean
        total = self.count + n
        self.mean = self.mean + delta * n / total
        self.var = (self.var * self.count + obs.var(0) * n + delta**2 * self.count * n / total) / total
        self.count = total
        return (obs - self.mean) / (self.var + 1e-6).sqrt()


class PPO:
    def __init__(self, settings):
        self.s = settings
        self.agent = Agent()
        self.optimizer = torch.optim.Adam(self.agent.parameters(), settings.lr)
        self.sea, self.norm = Swell(settings.gliders, 4), Normaliser(OBS)
        self.obs = self.norm(torch.from_numpy(self.sea.observe()))
        self.rollout = Rollout()
        self.returns = collections.deque(maxlen=50)

    @torch.no_grad()
    def collect(self):
        self.rollout.clear()
        for _ in range(self.s.horizon):
            choice, value = self.agent(self.obs)
            action = choice.sample()
            obs, reward, done = self.sea.step(action.numpy())
            self.rollout.add(
                obs=self.obs,
                action=action,
                logp=choice.log_prob(action),
                value=value,
                reward=torch.from_numpy(reward),
                done=torch.from_numpy(done).float(),
            )
            self.returns.append(float(reward.mean()))
            self.obs = self.norm(torch.from_numpy(obs))
        return self.agent(self.obs)[1]

    def learn(self, advantage, target):
        flat = {k: self.rollout.stacked(k).flatten(0, 1) for k in ("obs", "action", "logp")}
        advantage, target = advantage.flatten(), target.flatten()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        for _ in range(self.s.epochs):
            for part in torch.randperm(len(advantage)).split(self.s.minibatch):
                choice, value = self.agent(flat["obs"][part])
                ratio = (choice.log_prob(flat["action"][part]) - flat["logp"][part]).exp()
                a = advantage[part]
                gain = torch.min(ratio * a, ratio.clamp(1 - self.s.clip, 1 + self.s.clip) * a).mean()
                loss = -gain + 0.5 * (value - target[part]).square().mean() - self.s.entropy * choice.entropy().mean()
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.agent.parameters(), 0.5)
                self.optimizer.step()
        return loss.item()

    def update(self):
        last = self.collect()
        return self.learn(*self.rollout.finish(last))


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    settings = Settings()
    print(json.dumps(asdict(settings)))
    ppo, began = PPO(settings), time.perf_counter()
    for k in range(1, settings.updates + 1):
        loss = ppo.update()
        with open("progress.csv", "a") as file:
            file.write(f"{k},{loss:.5f},{sum(ppo.returns) / len(ppo.returns):.4f}\n")
        if k % 100 == 0:
            print(f"update {k}: loss {loss:.4f}, reward {sum(ppo.returns) / len(ppo.returns):.3f}", flush=True)
            torch.save(ppo.agent.state_dict(), "agent.pt")
    print(f"{settings.updates} steps in {time.perf_counter() - began:.3f}s, loss {loss:.5f}")


if __name__ == "__main__":
    main()
