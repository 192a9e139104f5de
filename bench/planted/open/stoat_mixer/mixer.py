from torch import nn


def mlp(width, inner):
    return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across, self.within = mlp(tokens, 2 * tokens), mlp(width, 3 * width)

    def forward(self, x):
        x = x + self.across(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.n2(x))


class Mixer(nn.Module):
    def __init__(self, side=32, patch=4, width=192, depth=4, kinds=10):
        super().__init__()
        tokens = (side // patch) ** 2
        self.cut = nn.Conv2d(3, width, patch, stride=patch)
        self.blocks = nn.Sequential(*[MixerBlock(tokens, width) for _ in range(depth)])
        self.head = nn.Linear(width, kinds)

    def forward(self, picture):
        x = self.cut(picture).flatten(2).transpose(1, 2)
        return self.head(self.blocks(x).mean(1))
