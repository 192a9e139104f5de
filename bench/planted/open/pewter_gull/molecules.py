"""Random small graphs with a label that depends on ring count and atom mix."""

import torch


def build_set(n, nodes, kinds, seed):
    g = torch.Generator().manual_seed(seed)
    atom = torch.randint(0, kinds, (n, nodes), generator=g)
    adj = torch.zeros(n, nodes, nodes)
    for i in range(nodes - 1):
        adj[:, i, i + 1] = 1.0
    extra = (torch.rand(n, nodes, nodes, generator=g) < 0.06).float().triu(2)
    adj = ((adj + extra) > 0).float()
    adj = adj + adj.transpose(1, 2)
    rings = extra.sum((1, 2))
    score = rings + (atom == 1).sum(1) - 0.5 * (atom == 2).sum(1)
    label = (score > score.median()).long()
    hat = adj + torch.eye(nodes)
    inv = hat.sum(-1).rsqrt()
    return atom, inv[:, :, None] * hat * inv[:, None, :], label
