import torch
from torch import Tensor, nn


def pair(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.down1, self.down2, self.floor = pair(1, width), pair(width, 2 * width), pair(2 * width, 4 * width)
        self.rise2, self.rise1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.up2, self.up1 = pair(4 * width, 2 * width), pair(2 * width, width)
        self.pool, self.out = nn.MaxPool2d(2), nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.floor(self.pool(b))
        b = self.up2(torch.cat([self.rise2(c), b], dim=1))
        return self.out(self.up1(torch.cat([self.rise1(b), a], dim=1)))
