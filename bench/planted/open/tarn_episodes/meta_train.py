import os
import time

import torch

from feed import episode_loader
from proto import ProtoNet
from settings import SETTINGS as s


def one_round(net, opt, loader, budget):
    total, count = 0.0, 0
    for pages, _ in loader:
        if count < budget:
            loss = net(pages, s.ways, s.shots)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total, count = total + loss.item(), count + 1
    return total / count, count


def main():
    torch.manual_seed(s.seed)
    limit = int(os.environ.get("PLANTED_STEPS", s.rounds * s.episodes_per_round))
    loader = episode_loader(s)
    net = ProtoNet()
    opt = torch.optim.Adam(net.parameters(), lr=s.lr)
    done, number, clock = 0, 0, time.time()
    while done < limit:
        mean, count = one_round(net, opt, loader, limit - done)
        done, number = done + count, number + 1
        if number % 30 == 0:
            print(f"round {number:3d}  {mean:.4f}")
    print(f"{done} steps in {time.time() - clock:.2f}s, loss {mean:.6f}")


if __name__ == "__main__":
    main()
