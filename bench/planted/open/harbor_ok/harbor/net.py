from torch import nn


def conv(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class BerthNet(nn.Sequential):
    def __init__(self, w=32):
        super().__init__(
            conv(3, w),
            conv(w, 2 * w, 2),
            conv(2 * w, 2 * w),
            conv(2 * w, 4 * w, 2),
            conv(4 * w, 4 * w),
            nn.AdaptiveAvgPool2d((1, 6)),
            nn.Flatten(),
            nn.Linear(24 * w, 6),
        )
