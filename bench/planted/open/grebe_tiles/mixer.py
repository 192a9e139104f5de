from torch import nn


class MixerLayer(nn.Module):
    def __init__(self, places, width):
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(places, 2 * places), nn.ReLU(), nn.Linear(2 * places, places))
        self.within = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.across(self.one(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.two(x))


class Mixer(nn.Module):
    def __init__(self, side, patch, width, depth, classes=6):
        super().__init__()
        self.patches = nn.Conv2d(4, width, patch, stride=patch)
        places = (side // patch) ** 2
        self.layers = nn.Sequential(*[MixerLayer(places, width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.layers(x)).mean(1))
