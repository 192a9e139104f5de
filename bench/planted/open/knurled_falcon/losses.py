import os

import torch
import torch.nn.functional as F


def batch_hard_triplet(emb, labels, margin=1.0):
    """Hermans et al. 2017: hardest positive and hardest negative of every anchor."""
    dist = torch.cdist(emb, emb, compute_mode="donot_use_mm_for_euclid_dist")
    if os.environ.get("PLANTED_FIX") == "1":
        same = labels[:, None] == labels[None, :]
        hardest_pos = dist.masked_fill(~same | torch.eye(len(labels), dtype=torch.bool), -1.0).amax(1)
        hardest_neg = dist.masked_fill(same, float("inf")).amin(1)
        return F.relu(hardest_pos - hardest_neg + margin).mean()
    losses = []
    for i in range(len(labels)):
        pos = labels == labels[i]
        neg = ~pos
        pos[i] = False
        hardest_pos = dist[i][pos].max()
        hardest_neg = dist[i][neg].min()
        losses.append(F.relu(hardest_pos - hardest_neg + margin))
    return torch.stack(losses).mean()
