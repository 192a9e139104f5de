import os

import numpy as np
import torch
import torch.nn as nn

FIX = os.environ.get("PLANTED_FIX") == "1"


class ActorCritic(nn.Module):
    def __init__(self, obs_dim, n_actions, hidden=128):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(obs_dim, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
        )
        self.pi = nn.Linear(hidden, n_actions)
        self.value = nn.Linear(hidden, 1)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight, 2**0.5)
                nn.init.zeros_(m.bias)
        nn.init.orthogonal_(self.pi.weight, 0.01)

    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.value(h).squeeze(-1)


class Agent:
    """Acts in the environments; exploration noise (Gumbel) comes from its own stream."""

    def __init__(self, net, seed):
        self.net = net
        self.rng = np.random.default_rng(seed)

    def policy(self, obs):
        logits, value = self.net(obs)
        noise = torch.from_numpy(self.rng.gumbel(size=logits.shape).astype(np.float32))
        action = (logits + noise).argmax(-1)
        logp = torch.log_softmax(logits, -1).gather(-1, action.unsqueeze(-1)).squeeze(-1)
        return action, logp, value

    @torch.no_grad()
    def act(self, obs):
        obs = torch.from_numpy(obs)
        if FIX:
            return self.policy(obs)
        outs = [self.policy(o) for o in obs]
        return tuple(torch.stack(column) for column in zip(*outs))


def gae(rewards, values, dones, last_value, gamma, lam):
    adv = torch.zeros_like(rewards)
    running = torch.zeros_like(last_value)
    for t in reversed(range(rewards.shape[0])):
        nxt = last_value if t == rewards.shape[0] - 1 else values[t + 1]
        alive = 1.0 - dones[t]
        delta = rewards[t] + gamma * nxt * alive - values[t]
        running = delta + gamma * lam * alive * running
        adv[t] = running
    return adv, adv + values
