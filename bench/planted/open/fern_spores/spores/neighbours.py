import os

import torch

PARTIAL = os.environ.get("PLANTED_FIX") == "1"


def nearest(points, k):
    """Indices of the k nearest points of each point."""
    found = []
    for rows in points.split(200):
        apart = torch.cdist(rows, points)
        if PARTIAL:
            found.append(apart.topk(k + 1, largest=False, sorted=True).indices[:, 1:])
        else:
            found.append(apart.argsort(dim=1)[:, 1 : k + 1])
    return torch.cat(found)
