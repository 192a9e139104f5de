from torch import nn


def conv(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.GroupNorm(4, cout), nn.ReLU(inplace=True))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.f = nn.Sequential(conv(width, width), conv(width, width))

    def forward(self, x):
        return x + self.f(x)


def big_net(classes):
    return nn.Sequential(
        conv(3, 16),
        conv(16, 32, 2),
        Residual(32),
        conv(32, 48, 2),
        Residual(48),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, classes),
    )


def small_net(classes):
    return nn.Sequential(conv(3, 16), conv(16, 24, 2), conv(24, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes))
