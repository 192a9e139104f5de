import os
import random
import time

import torch
from maze import Episode, Maze
from torch import nn

EPISODES = int(os.environ.get("PLANTED_STEPS", 150))
if os.environ.get("PLANTED_FIX") == "1":
    Episode.tidy = 500


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Sequential(nn.Linear(4, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.move, self.value = nn.Linear(128, 4), nn.Linear(128, 1)

    def forward(self, seen):
        h = self.look(seen)
        return self.move(h), self.value(h).squeeze(-1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    rng = random.Random(3)
    maze, policy = Maze(160), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    start = time.time()
    for number in range(1, EPISODES + 1):
        with Episode(number):
            trail = torch.tensor(maze.walk(rng, 120), dtype=torch.float32)
            logits, value = policy(trail[:, :4] / 160)
            chosen = torch.log_softmax(logits, -1).gather(1, trail[:, 4:].long()).squeeze(1)
            gain = (trail[:, 2] + trail[:, 3] - trail[:, 0] - trail[:, 1]).flip(0).cumsum(0).flip(0) / 10
            loss = -(chosen * (gain - value.detach())).mean() + (value - gain).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"{EPISODES} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
