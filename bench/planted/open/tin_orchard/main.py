import time
import itertools
import json
import os
import pathlib

import torch
from torch.nn import functional as F

from batching import GraphCollator, endless
from gcn import PropertyNet
from molecules import KINDS, library

STEPS = int(os.environ.get("PLANTED_STEPS", "560"))


def evaluate(net, graphs, collate, batch):
    net.eval()
    total = 0.0
    with torch.no_grad():
        for i in range(0, len(graphs), batch):
            kinds, adj, mask, y = collate(graphs[i : i + batch])
            total += F.l1_loss(net(kinds, adj, mask), y, reduction="sum").item()
    net.train()
    return total / len(graphs)


def main():
    cfg = json.loads((pathlib.Path(__file__).parent / "run.json").read_text())
    torch.manual_seed(cfg["seed"])
    began = time.perf_counter()
    graphs = library(cfg["graphs"], cfg["seed"])
    held_out, train = graphs[: cfg["held_out"]], graphs[cfg["held_out"] :]
    collate = GraphCollator(graphs)
    net = PropertyNet(KINDS, cfg["width"], cfg["depth"])
    opt = torch.optim.Adam(net.parameters(), lr=cfg["lr"])

    batches = itertools.islice(endless(train, cfg["batch"], collate, cfg["seed"]), STEPS)
    for step, (kinds, adj, mask, y) in enumerate(batches, start=1):
        loss = F.smooth_l1_loss(net(kinds, adj, mask), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % cfg["print_every"] == 0 or step == STEPS:
            print(f"{step:>4} loss {loss.item():.6f}")
    print(f"held-out mae {evaluate(net, held_out, collate, cfg['batch']):.4f}")
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
