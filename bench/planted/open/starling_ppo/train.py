import os
import time

import torch
from flock import Flock
from torch import nn

UPDATES = int(os.environ.get("PLANTED_STEPS", 300))
HORIZON, PASSES = 12, 4


class Actor(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.move, self.value = nn.Linear(width, 8), nn.Linear(width, 1)

    def forward(self, place):
        h = self.body(place)
        return self.move(h), self.value(h).squeeze(-1)


@torch.no_grad()
def rollout(actor, flock):
    places, moves, logs, values, rewards = [], [], [], [], []
    place = flock.place
    for _ in range(HORIZON):
        mean, value = actor(place)
        move = mean + 0.3 * torch.randn_like(mean)
        places.append(place)
        moves.append(move)
        logs.append(-(move - mean).square().sum(-1) / 0.18)
        values.append(value)
        place, reward = flock.step(move)
        rewards.append(reward)
    gain = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    values = torch.stack(values)
    return torch.cat(places), torch.cat(moves), torch.cat(logs), gain.flatten(), (gain - values).flatten()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(99)
    actor, flock = Actor(), Flock()
    optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
    step, start = 0, time.time()
    while step < UPDATES:
        place, move, old, gain, edge = rollout(actor, flock)
        for _ in range(PASSES):
            for part in torch.randperm(len(place)).chunk(2):
                mean, value = actor(place[part])
                ratio = (-(move[part] - mean).square().sum(-1) / 0.18 - old[part]).exp()
                clipped = torch.min(ratio * edge[part], ratio.clamp(0.8, 1.2) * edge[part])
                loss = -clipped.mean() + 0.5 * (value - gain[part]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
                optimizer.step()
                step += 1
                if step == UPDATES:
                    break
            if step == UPDATES:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
