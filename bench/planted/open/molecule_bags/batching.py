"""From a list of molecules to one batch: atoms padded, bonds as a dense adjacency."""

import os

import torch

FEATS = 16


def bag(molecules):
    n = max(m["atoms"].shape[0] for m in molecules)
    b = len(molecules)
    x = torch.zeros(b, n, FEATS)
    adj = torch.zeros(b, n, n)
    if os.environ.get("PLANTED_FIX") == "1":
        for k, m in enumerate(molecules):
            x[k, : m["atoms"].shape[0]] = m["atoms"]
        which = torch.repeat_interleave(torch.arange(b), torch.tensor([m["bonds"].shape[0] for m in molecules]))
        pairs = torch.cat([m["bonds"] for m in molecules])
        adj[which, pairs[:, 0], pairs[:, 1]] = 1.0
        adj[which, pairs[:, 1], pairs[:, 0]] = 1.0
    else:
        for k, m in enumerate(molecules):
            for a in range(m["atoms"].shape[0]):
                x[k, a] = m["atoms"][a]
            for i, j in m["bonds"]:
                adj[k, i, j] = 1.0
                adj[k, j, i] = 1.0
    adj = adj + torch.eye(n)
    adj = adj / adj.sum(-1, keepdim=True)
    y = torch.stack([m["solubility"] for m in molecules])
    return x, adj, y
