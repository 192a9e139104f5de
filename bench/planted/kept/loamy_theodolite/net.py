import torch
import torch.nn as nn


def conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class SmallUNet(nn.Module):
    def __init__(self, n_classes, width=6, depth=3):
        super().__init__()
        widths = [width * 2 ** i for i in range(depth)]
        self.down = nn.ModuleList(conv(c, w) for c, w in zip([3] + widths[:-1], widths))
        self.up = nn.ModuleList(conv(a + b, a) for a, b in zip(widths[:-1], widths[1:]))
        self.pool = nn.MaxPool2d(2)
        self.upsample = nn.Upsample(scale_factor=2, mode="nearest")
        self.head = nn.Conv2d(widths[0], n_classes, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else self.pool(x))
            skips.append(x)
        for skip, block in zip(skips[-2::-1], list(self.up)[::-1]):
            x = block(torch.cat([skip, self.upsample(x)], dim=1))
        return self.head(x)
