import torch
from torch import nn

REGISTRY = {}


def register(build):
    REGISTRY[build.__name__] = build
    return build


def create_model(name, **options):
    return REGISTRY[name](**options)


class Mixer(nn.Module):
    def __init__(self, width, tokens):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.along = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.scale = nn.Parameter(torch.full((2, width), 0.5))

    def forward(self, x):
        x = x + self.scale[0] * self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.scale[1] * self.along(self.norm2(x))


class MixerNet(nn.Module):
    def __init__(self, num_classes, width, depth, patch=4, size=20):
        super().__init__()
        self.stem = nn.Conv2d(1, width, patch, stride=patch)
        self.blocks = nn.Sequential(*(Mixer(width, (size // patch) ** 2) for _ in range(depth)))
        self.head = nn.Linear(width, num_classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x).flatten(2).transpose(1, 2)).mean(1))


@register
def mixer_tiny(num_classes):
    return MixerNet(num_classes, 32, 8)


@register
def mixer_small(num_classes):
    return MixerNet(num_classes, 64, 10)
