import os
import time

import torch
from batching import FEATS, bag
from molecules import Molecules
from torch import nn
from torch.utils.data import DataLoader


class MessagePassing(nn.Module):
    def __init__(self, width=144, rounds=3):
        super().__init__()
        self.embed = nn.Linear(FEATS, width)
        self.rounds = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(rounds))
        self.readout = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x, adj):
        h = self.embed(x)
        for lin, norm in zip(self.rounds, self.norms):
            h = norm(h + torch.relu(lin(adj @ h)))
        return self.readout(h.mean(1)).squeeze(-1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    steps = int(os.environ.get("PLANTED_STEPS", 1110))
    loader = DataLoader(Molecules(1500, seed=8), batch_size=32, shuffle=True, collate_fn=bag, drop_last=True)
    model = MessagePassing()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    seen = []
    t = time.perf_counter()
    epoch = 0
    while len(seen) < steps:
        epoch += 1
        for x, adj, y in loader:
            loss = ((model(x, adj) - y) ** 2).mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            seen.append(loss.item())
            if len(seen) == steps:
                break
        print(f"epoch {epoch} mse {sum(seen[-40:]) / len(seen[-40:]):.4f}")
    print(f"{len(seen)} steps in {time.perf_counter() - t:.2f}s, loss {sum(seen[-20:]) / len(seen[-20:]):.4f}")


if __name__ == "__main__":
    main()
