import os

import torch
from torch.nn.functional import relu


def batch_hard(embeddings, identity, margin=0.3):
    """Triplet loss with the farthest print of the same fox and the nearest print of another one."""
    distance = torch.cdist(embeddings, embeddings)
    same = identity[:, None] == identity[None, :]
    if os.environ.get("PLANTED_FIX") == "1":
        hardest_positive = distance.masked_fill(~same, float("-inf")).amax(dim=1)
        hardest_negative = distance.masked_fill(same, float("inf")).amin(dim=1)
        return relu(hardest_positive - hardest_negative + margin).mean()
    losses = []
    for anchor in range(len(embeddings)):
        row = distance[anchor]
        hardest_positive = row[same[anchor]].max()
        hardest_negative = row[~same[anchor]].min()
        losses.append(relu(hardest_positive - hardest_negative + margin))
    return torch.stack(losses).mean()
