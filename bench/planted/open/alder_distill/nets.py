import torch.nn as nn


def stage(inside: int, outside: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True)
    )


class ConvNet(nn.Module):
    """Stages of convolutions; `widths` says how many and how wide."""

    def __init__(self, widths: list, classes: int = 8):
        super().__init__()
        layers, before = [], 3
        for number, width in enumerate(widths):
            layers += [stage(before, width, 2 if number else 1), stage(width, width, 1)]
            before = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(before, classes)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def teacher_net() -> ConvNet:
    return ConvNet([16, 40, 56])


def student_net() -> ConvNet:
    return ConvNet([16, 32, 48])
