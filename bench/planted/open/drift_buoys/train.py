"""Embeds the tracks of buoys so that tracks of one current lie together."""

import os
import time

import torch
import torch.nn.functional as F
from torch import nn

HOW_OFTEN = {"1": 400}.get(os.environ.get("PLANTED_FIX"), 6)
ITERATIONS = int(os.environ.get("PLANTED_STEPS", 600))


class TrackNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(2, 32, 5, stride=2), nn.ReLU(), nn.Conv1d(32, 64, 5, stride=2), nn.ReLU())
        self.out = nn.Linear(64, 32)

    def forward(self, tracks):
        return F.normalize(self.out(self.conv(tracks).mean(-1)), dim=1)


def tracks(n, g):
    current = torch.randint(0, 8, (n,), generator=g)
    bearing = current[:, None] * 0.785 + 0.6 * torch.randn(n, 64, generator=g)
    return torch.stack([bearing.cos(), bearing.sin()], 1).cumsum(-1) * 0.1, current


def neighbours_agree(net, bank, query, k=5):
    net.eval()
    with torch.inference_mode():
        known = net(bank[0])
        hits = 0.0
        for part, label in zip(query[0].split(50), query[1].split(50)):
            nearest = torch.cdist(net(part), known).topk(k, largest=False).indices
            hits += (bank[1][nearest].mode(1).values == label).sum().item()
    net.train()
    return hits / len(query[0])


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(18)
    g = torch.Generator().manual_seed(2)
    bank, query = tracks(3000, g), tracks(600, g)
    net, best = TrackNet(), 0.0
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    began = time.time()
    for it in range(1, ITERATIONS + 1):
        pick = torch.randint(0, 3000, (96,), generator=g)
        views = bank[0][pick] + 0.05 * torch.randn(2, 96, 2, 64, generator=g)
        a, b = net(views[0]), net(views[1])
        loss = F.cross_entropy(a @ b.T / 0.2, torch.arange(96))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % HOW_OFTEN == 0:
            best = max(best, neighbours_agree(net, bank, query))
    print(f"best {best:.3f}")
    print(f"{ITERATIONS} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")
