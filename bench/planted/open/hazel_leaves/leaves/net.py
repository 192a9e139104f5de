from torch import nn


class ConvBlock(nn.Module):
    def __init__(self, width, expand):
        super().__init__()
        self.net = nn.Sequential(
            nn.BatchNorm2d(width), nn.Conv2d(width, expand * width, 1), nn.GELU(), nn.Conv2d(expand * width, width, 3, padding=1)
        )

    def forward(self, x):
        return x + self.net(x)


def hazelnet(classes, width=24, depth=(1, 2, 1), expand=2):
    layers, here = [nn.Conv2d(3, width, 4, stride=2, padding=1)], width
    for i, blocks in enumerate(depth):
        layers += [ConvBlock(here, expand) for _ in range(blocks)]
        if i < len(depth) - 1:
            layers.append(nn.Conv2d(here, 2 * here, 2, stride=2))
            here *= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(here, classes))
