import argparse
import os
import time

import torch
from torch import nn

from advantage import advantages
from harbour import Harbours


class Captain(nn.Module):
    def __init__(self, inputs=6, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.policy, self.value = nn.Linear(width, 2), nn.Linear(width, 1)

    def forward(self, x):
        h = self.body(x)
        return torch.distributions.Categorical(logits=self.policy(h)), self.value(h).squeeze(-1)


@torch.no_grad()
def collect(captain, harbours, length):
    views, acts, logs, values, rewards, dones = [], [], [], [], [], []
    for _ in range(length):
        view = harbours.view()
        choice, value = captain(view)
        act = choice.sample()
        reward, done = harbours.step(act)
        for box, item in zip((views, acts, logs, values, rewards, dones), (view, act, choice.log_prob(act), value, reward, done.float())):
            box.append(item)
    last = captain(harbours.view())[1]
    return *(torch.stack(box) for box in (views, acts, logs, values, rewards, dones)), last


def update(captain, optimizer, batch, clip, passes, pieces):
    views, acts, logs, advantage, returns = batch
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    for _ in range(passes):
        for pick in torch.randperm(len(views)).chunk(pieces):
            choice, value = captain(views[pick])
            ratio = (choice.log_prob(acts[pick]) - logs[pick]).exp()
            gain = torch.min(ratio * advantage[pick], ratio.clamp(1 - clip, 1 + clip) * advantage[pick]).mean()
            loss = -gain + 0.5 * (value - returns[pick]).square().mean() - 0.01 * choice.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(captain.parameters(), 0.5)
            optimizer.step()
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--harbours", type=int, default=512)
    parser.add_argument("--length", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(70)
    torch.set_num_threads(1)
    captain, harbours = Captain(), Harbours(args.harbours, 71)
    optimizer = torch.optim.Adam(captain.parameters(), 5e-4)
    limit, steps, start = int(os.environ.get("PLANTED_STEPS", 10**9)), 0, time.perf_counter()
    for turn in range(1, args.rounds + 1):
        views, acts, logs, values, rewards, dones, last = collect(captain, harbours, args.length)
        gains = advantages(rewards, values, dones, last)
        flat = [x.flatten(0, 1) for x in (views, acts, logs, gains, gains + values)]
        loss = update(captain, optimizer, flat, clip=0.2, passes=1, pieces=4)
        steps += 4
        if turn % 5 == 0:
            print(f"round {turn:3d}  reward {rewards.mean().item():+.4f}  loss {loss.item():.4f}")
        if steps >= limit:
            break
    print(f"{steps} steps in {time.perf_counter() - start:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
