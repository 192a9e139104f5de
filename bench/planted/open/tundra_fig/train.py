"""Graph regression on small molecule-like graphs with a dense GCN."""

import argparse
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def build_graphs(num_graphs, num_nodes, num_feats, seed):
    """Random geometric graphs, symmetrically normalised, all padded to num_nodes."""
    rng = np.random.default_rng(seed)
    charge = rng.standard_normal(num_feats - 1)
    adj = np.zeros((num_graphs, num_nodes, num_nodes))
    feats = np.zeros((num_graphs, num_nodes, num_feats))
    mask = np.zeros((num_graphs, num_nodes))
    target = np.zeros(num_graphs)
    for g in range(num_graphs):
        n = rng.integers(num_nodes * 3 // 4, num_nodes + 1)
        pos = rng.uniform(0, 1, (n, 3))
        dist = np.linalg.norm(pos[:, None] - pos[None], axis=-1)
        a = (dist < 0.35).astype(float)
        d = 1 / np.sqrt(a.sum(1))
        adj[g, :n, :n] = a * d[:, None] * d[None]
        kind = rng.integers(0, num_feats - 1, n)
        feats[g, np.arange(n), kind] = 1
        feats[g, :n, -1] = a.sum(1)
        mask[g, :n] = 1
        target[g] = (charge[kind][:, None] * a).sum() / n
    feats[..., -1] /= feats[..., -1].std()
    target = (target - target.mean()) / target.std()
    return adj, feats, mask, target


class GCNLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.msg = nn.Linear(dim, dim)
        self.skip = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, adj):
        return h + F.relu(self.norm(torch.bmm(adj, self.msg(h)) + self.skip(h)))


class GraphNet(nn.Module):
    def __init__(self, num_feats, dim, layers):
        super().__init__()
        self.embed = nn.Linear(num_feats, dim)
        self.layers = nn.ModuleList(GCNLayer(dim) for _ in range(layers))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, feats, adj, mask):
        h = self.embed(feats)
        for layer in self.layers:
            h = layer(h, adj)
        pooled = (h * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return self.readout(pooled).squeeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--graphs", type=int, default=600)
    ap.add_argument("--nodes", type=int, default=40)
    ap.add_argument("--feats", type=int, default=12)
    ap.add_argument("--dim", type=int, default=96)
    ap.add_argument("--layers", type=int, default=3)
    ap.add_argument("--batch-size", type=int, default=24)
    ap.add_argument("--steps", type=int, default=1200)
    ap.add_argument("--lr", type=float, default=0.01)
    ap.add_argument("--seed", type=int, default=2)
    args = ap.parse_args()
    steps = int(os.environ.get("PLANTED_STEPS", args.steps))
    torch.manual_seed(args.seed)

    arrays = build_graphs(args.graphs, args.nodes, args.feats, args.seed)
    adj, feats, mask, target = (torch.from_numpy(a) for a in arrays)
    if os.environ.get("PLANTED_FIX") == "1":
        adj, feats, mask, target = adj.float(), feats.float(), mask.float(), target.float()

    net = GraphNet(args.feats, args.dim, args.layers).to(feats.dtype)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)

    perm, at = torch.randperm(args.graphs), 0
    start = time.perf_counter()
    for step in range(1, steps + 1):
        if at + args.batch_size > args.graphs:
            perm, at = torch.randperm(args.graphs), 0
        idx = perm[at : at + args.batch_size]
        at += args.batch_size

        pred = net(feats[idx], adj[idx], mask[idx])
        loss = F.mse_loss(pred, target[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"[{step:4d}/{steps}] mse {loss.item():.4f}")
    elapsed = time.perf_counter() - start
    print(f"{steps} steps in {elapsed:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
