"""Double DQN on Catch: a paddle, falling fruit, four stacked 32x32 frames."""

import os
import random
import time
import warnings
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")

STEPS = int(os.environ.get("PLANTED_STEPS", 800))
SEED = 17
SIDE = 32
STACK = 4
BATCH = 24
GAMMA = 0.97
REPLAY = 4000
WARMUP = 300
ACTS_PER_UPDATE = 2
TARGET_EVERY = 40

Transition = namedtuple("Transition", "state action reward next_state done")


class Catch:
    """Three actions (left, stay, right); +1 for a caught fruit, -1 for a lost one. An episode is five fruits."""

    def __init__(self, rng):
        self.rng = rng

    def _frame(self):
        f = np.zeros((SIDE, SIDE), np.float32)
        f[SIDE - 2 :, self.paddle : self.paddle + 6] = 1.0
        y, x = int(self.y), int(self.x)
        f[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2] = 0.7
        return f

    def _drop(self):
        self.x, self.y = self.rng.uniform(2, SIDE - 3), 1.0
        self.dx = self.rng.uniform(-0.6, 0.6)

    def reset(self):
        self.paddle, self.fruits = SIDE // 2 - 3, 0
        self._drop()
        self.frames = deque([self._frame()] * STACK, maxlen=STACK)
        return np.stack(self.frames)

    def step(self, action):
        self.paddle = int(np.clip(self.paddle + 2 * (action - 1), 0, SIDE - 6))
        self.x = float(np.clip(self.x + self.dx, 1, SIDE - 2))
        self.y += 1.5
        reward = 0.0
        if self.y >= SIDE - 3:
            reward = 1.0 if self.paddle - 1 <= self.x <= self.paddle + 6 else -1.0
            self.fruits += 1
            self._drop()
        self.frames.append(self._frame())
        return np.stack(self.frames), reward, self.fruits >= 5


class QNet(nn.Module):
    def __init__(self, actions=3):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(STACK, 16, 5, 2, 2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.value = nn.Sequential(nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 1))
        self.advantage = nn.Sequential(nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, actions))

    def forward(self, x):
        h = self.conv(x)
        adv = self.advantage(h)
        return self.value(h) + adv - adv.mean(1, keepdim=True)


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n):
        batch = Transition(*zip(*random.sample(self.memory, n)))
        if os.environ.get("PLANTED_FIX") == "1":
            state = torch.from_numpy(np.stack(batch.state))
            next_state = torch.from_numpy(np.stack(batch.next_state))
        else:
            state = torch.tensor(batch.state, dtype=torch.float32)
            next_state = torch.tensor(batch.next_state, dtype=torch.float32)
        action = torch.tensor(batch.action)
        reward = torch.tensor(batch.reward, dtype=torch.float32)
        done = torch.tensor(batch.done, dtype=torch.float32)
        return state, action, reward, next_state, done


class Agent:
    def __init__(self):
        self.online, self.target = QNet(), QNet()
        self.target.load_state_dict(self.online.state_dict())
        self.opt = torch.optim.Adam(self.online.parameters(), lr=5e-4)
        self.epsilon = 1.0

    @torch.no_grad()
    def act(self, state):
        if random.random() < self.epsilon:
            return random.randrange(3)
        return self.online(torch.from_numpy(state)[None]).argmax(1).item()

    def learn(self, memory):
        state, action, reward, next_state, done = memory.sample(BATCH)
        q = self.online(state).gather(1, action[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.online(next_state).argmax(1, keepdim=True)
            goal = reward + GAMMA * (1 - done) * self.target(next_state).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(q, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def main():
    random.seed(SEED)
    torch.manual_seed(SEED)
    env = Catch(np.random.default_rng(SEED))
    agent, memory = Agent(), ReplayMemory(REPLAY)

    state, score, scores = env.reset(), 0.0, deque(maxlen=20)

    def interact():
        nonlocal state, score
        action = agent.act(state)
        nxt, reward, done = env.step(action)
        memory.push(state, action, reward, nxt, done)
        score += reward
        state = nxt
        if done:
            scores.append(score)
            state, score = env.reset(), 0.0

    for _ in range(WARMUP):
        interact()

    loss = float("nan")
    t0 = time.perf_counter()
    for update in range(1, STEPS + 1):
        agent.epsilon = max(0.05, 1.0 - update / 800)
        for _ in range(ACTS_PER_UPDATE):
            interact()
        loss = agent.learn(memory)
        if update % TARGET_EVERY == 0:
            agent.target.load_state_dict(agent.online.state_dict())
            print(f"update {update:4d}  epsilon {agent.epsilon:.2f}  loss {loss:.5f}  score {sum(scores) / max(len(scores), 1):+.2f}")
    print(f"{STEPS} steps in {time.perf_counter() - t0:.1f} s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
