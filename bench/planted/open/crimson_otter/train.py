"""DQN for a small grid courier: pick up parcels, avoid the dogs."""

import argparse
import os
import random
import time
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "state action reward next_state done")
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]


class CourierEnv:
    """Three planes of size x size: courier, parcels, dogs."""

    def __init__(self, size=10, parcels=5, dogs=4, limit=60, seed=0):
        self.size, self.n_parcels, self.n_dogs, self.limit = size, parcels, dogs, limit
        self.rng = np.random.default_rng(seed)

    def reset(self):
        cells = self.rng.permutation(self.size**2)[: 1 + self.n_parcels + self.n_dogs]
        cells = [divmod(int(c), self.size) for c in cells]
        self.courier = cells[0]
        self.parcels = set(cells[1 : 1 + self.n_parcels])
        self.dogs = set(cells[1 + self.n_parcels :])
        self.t = 0
        return self.observe()

    def observe(self):
        obs = np.zeros((3, self.size, self.size), dtype=np.float32)
        obs[0][self.courier] = 1.0
        for cell in self.parcels:
            obs[1][cell] = 1.0
        for cell in self.dogs:
            obs[2][cell] = 1.0
        return obs

    def step(self, action):
        dr, dc = MOVES[action]
        r = min(max(self.courier[0] + dr, 0), self.size - 1)
        c = min(max(self.courier[1] + dc, 0), self.size - 1)
        self.courier = (r, c)
        self.t += 1
        reward, done = -0.02, self.t >= self.limit
        if self.courier in self.parcels:
            self.parcels.remove(self.courier)
            reward = 1.0
            done = done or not self.parcels
        elif self.courier in self.dogs:
            reward, done = -1.0, True
        return self.observe(), reward, done


class QNet(nn.Module):
    def __init__(self, size, n_actions):
        super().__init__()
        self.conv = nn.Conv2d(3, 12, 3, padding=1)
        self.fc = nn.Linear(12 * size * size, 64)
        self.out = nn.Linear(64, n_actions)

    def forward(self, x):
        x = F.relu(self.conv(x)).flatten(1)
        return self.out(F.relu(self.fc(x)))


class ReplayBuffer:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        batch = Transition(*zip(*random.sample(self.memory, batch_size)))
        if os.environ.get("PLANTED_FIX") == "1":
            batch = batch._replace(state=np.stack(batch.state), next_state=np.stack(batch.next_state))
        states = torch.tensor(batch.state, dtype=torch.float32)
        next_states = torch.tensor(batch.next_state, dtype=torch.float32)
        actions = torch.tensor(batch.action)
        rewards = torch.tensor(batch.reward, dtype=torch.float32)
        dones = torch.tensor(batch.done, dtype=torch.float32)
        return states, actions, rewards, next_states, dones


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 1800)))
    p.add_argument("--warmup", type=int, default=1000)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--gamma", type=float, default=0.95)
    p.add_argument("--lr", type=float, default=5e-4)
    p.add_argument("--sync", type=int, default=100)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()

    random.seed(args.seed)
    torch.manual_seed(args.seed)
    env = CourierEnv(seed=args.seed)
    policy, target = QNet(env.size, len(MOVES)), QNet(env.size, len(MOVES))
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.Adam(policy.parameters(), lr=args.lr)
    buffer = ReplayBuffer(5000)

    state = env.reset()
    for _ in range(args.warmup):
        action = random.randrange(len(MOVES))
        next_state, reward, done = env.step(action)
        buffer.push(state, action, reward, next_state, float(done))
        state = env.reset() if done else next_state

    episode, returns = 0.0, deque([0.0], maxlen=20)
    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        eps = max(0.1, 1.0 - step / 1000)
        if random.random() < eps:
            action = random.randrange(len(MOVES))
        else:
            with torch.no_grad():
                action = policy(torch.from_numpy(state)[None]).argmax(1).item()
        next_state, reward, done = env.step(action)
        buffer.push(state, action, reward, next_state, float(done))
        episode += reward
        if done:
            returns.append(episode)
            episode = 0.0
        state = env.reset() if done else next_state

        s, a, r, s2, d = buffer.sample(args.batch_size)
        q = policy(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            goal = r + args.gamma * (1 - d) * target(s2).max(1).values
        loss = F.smooth_l1_loss(q, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.sync == 0:
            target.load_state_dict(policy.state_dict())
            print(f"step {step} eps {eps:.2f} return {np.mean(returns):.2f} loss {loss.item():.4f}")
    print(f"{args.steps} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
