import copy
import os
import time

import torch
from memory import RankedMemory
from torch import nn

UPDATES = int(os.environ.get("PLANTED_STEPS", 900))


class Agent:
    def __init__(self, fields=4, actions=4, gamma=0.97):
        self.q = nn.Sequential(nn.Linear(fields, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, actions))
        self.slow = copy.deepcopy(self.q)
        self.gamma = gamma
        self.memory = RankedMemory()
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=5e-4)

    def learn(self, count=1536):
        places, rows = self.memory.sample(count)
        rows = torch.from_numpy(rows)
        state, following, action, reward = rows[:, :4], rows[:, 4:8], (rows[:, 8] > 0).long(), rows[:, 9]
        with torch.no_grad():
            goal = reward + self.gamma * self.slow(following).max(1).values
        error = self.q(state).gather(1, action[:, None]).squeeze(1) - goal
        loss = nn.functional.huber_loss(error, torch.zeros_like(error))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.memory.reweigh(places, error.detach().numpy())
        return loss

    def follow(self, rate=0.01):
        with torch.no_grad():
            torch._foreach_lerp_(list(self.slow.parameters()), list(self.q.parameters()), rate)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(4)
    agent = Agent()
    start = time.time()
    for _ in range(UPDATES):
        loss = agent.learn()
        agent.follow()
    print(f"{UPDATES} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
