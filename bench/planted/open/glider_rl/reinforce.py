import os
import time

import numpy as np
import torch
from glider import Air
from torch import nn
from torch.distributions import Categorical

torch.set_num_threads(1)


class Policy(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(9, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.pi = nn.Linear(width, 3)
        self.v = nn.Linear(width, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.v(h).squeeze(-1)


def rollout(env, policy):
    obs, done = env.reset(), False
    seen, acts, rewards = [], [], []
    while not done:
        with torch.no_grad():
            logits, _ = policy(torch.from_numpy(obs))
            action = Categorical(logits=logits).sample()
        seen.append(obs)
        acts.append(action)
        obs, reward, done = env.step(action.numpy())
        rewards.append(reward)
    return torch.from_numpy(np.stack(seen)), torch.stack(acts), torch.from_numpy(np.stack(rewards))


def returns(rewards, gamma=0.97):
    out, running = [], torch.zeros(rewards.shape[1])
    for r in rewards.flip(0):
        running = r + gamma * running
        out.append(running)
    return torch.stack(out[::-1])


@torch.no_grad()
def evaluate(policy, episodes=12):
    """Greedy flights, one at a time as the field team does."""
    policy.eval()
    heights = []
    for e in range(episodes):
        air = Air(1, seed=1000 + e)
        obs, done = air.reset(), False
        while not done:
            logits, _ = policy(torch.from_numpy(obs))
            obs, _, done = air.step(logits.argmax(-1).numpy())
        heights.append(float(air.height[0]))
    policy.train()
    return float(np.mean(heights))


def main():
    torch.manual_seed(0)
    updates = int(os.environ.get("PLANTED_STEPS", 270))
    eval_every = 25 if os.environ.get("PLANTED_FIX") == "1" else 1
    env, policy = Air(64, seed=1), Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
    best = -1e9
    begin = time.time()
    for update in range(updates):
        obs, acts, rewards = rollout(env, policy)
        target = returns(rewards)
        for _ in range(3):
            logits, value = policy(obs)
            adv = (target - value).detach()
            dist = Categorical(logits=logits)
            loss = -(dist.log_prob(acts) * adv).mean() + 0.5 * (value - target).pow(2).mean() - 0.01 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if update % eval_every == 0:
            best = max(best, evaluate(policy))
        if update % 20 == 0:
            print(f"update {update} return {float(target[0].mean()):.3f} best height {best:.3f}")
    print(f"{updates} steps in {time.time() - begin:.2f}s, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
