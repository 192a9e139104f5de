import torch
from torch import nn
from torch.nn import functional as F


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.ReLU(), nn.MaxPool2d(2))


class ProtoNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(block(1, width), block(width, width), nn.Flatten())

    def forward(self, pages, ways, shots):
        z = self.layers(pages).view(ways, -1, self.width_of(pages))
        centres = z[:, :shots].mean(1)
        queries = z[:, shots:].flatten(0, 1)
        logits = -torch.cdist(queries, centres).square() / z.shape[-1] * 8
        wanted = torch.arange(ways).repeat_interleave(z.shape[1] - shots)
        return F.cross_entropy(logits, wanted)

    def width_of(self, pages):
        return self.layers[0][0].out_channels * (pages.shape[-1] // 4) ** 2
