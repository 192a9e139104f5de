import os
import time
import tomllib
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from graph import citation_graph
from layers import GraphConv


class GCN(nn.Module):
    def __init__(self, cin, hidden, cout, layers, dropout):
        super().__init__()
        sizes = [cin] + [hidden] * (layers - 1) + [cout]
        self.convs = nn.ModuleList(GraphConv(a, b) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(s) for s in sizes[1:-1])
        self.dropout = dropout

    def forward(self, x, edge_index):
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            if i < len(self.norms):
                x = F.dropout(F.relu(self.norms[i](x)), self.dropout, self.training)
        return x


def train_step(model, graph, optimizer):
    model.train()
    optimizer.zero_grad()
    logits = model(graph.x, graph.edge_index)
    loss = F.cross_entropy(logits[graph.train], graph.y[graph.train])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, graph, mask):
    model.eval()
    pred = model(graph.x, graph.edge_index).argmax(1)
    return (pred[mask] == graph.y[mask]).float().mean().item()


def main():
    with open(Path(__file__).with_name("config.toml"), "rb") as f:
        cfg = tomllib.load(f)
    steps = int(os.environ.get("PLANTED_STEPS", cfg["train"]["steps"]))
    graph = citation_graph(**cfg["graph"])
    torch.manual_seed(cfg["train"]["seed"])
    model = GCN(cfg["graph"]["features"], cfg["model"]["hidden"], cfg["graph"]["classes"],
                cfg["model"]["layers"], cfg["model"]["dropout"])
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["train"]["lr"],
                                 weight_decay=cfg["train"]["weight_decay"])
    best, start = 0.0, time.time()
    for step in range(1, steps + 1):
        loss = train_step(model, graph, optimizer)
        if step % cfg["train"]["eval_every"] == 0:
            score = accuracy(model, graph, graph.valid)
            best = max(best, score)
            print(f"{step:4d}: loss {loss:.4f}, validation {score:.3f} (best {best:.3f})")
    print(f"{steps} steps in {time.time() - start:.2f} s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
