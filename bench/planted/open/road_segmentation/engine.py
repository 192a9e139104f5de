import torch
from torch import nn


def train_step(model, optimizer, images, masks):
    model.train()
    loss = nn.functional.binary_cross_entropy_with_logits(model(images), masks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    inter = union = 0.0
    for images, masks in loader:
        pred = model(images) > 0
        inter += (pred & (masks > 0)).sum()
        union += (pred | (masks > 0)).sum()
    return (inter / union.clamp(min=1)).item()
