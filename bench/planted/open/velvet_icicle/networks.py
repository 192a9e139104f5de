import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, latent, width):
        super().__init__()
        self.width = width
        self.fc = nn.Linear(latent, 4 * width * 4 * 4)
        self.up = nn.Sequential(
            self.stage(4 * width, 2 * width),
            self.stage(2 * width, width),
            self.stage(width, width // 2),
            nn.Conv2d(width // 2, 1, 3, 1, 1),
            nn.Tanh(),
        )

    @staticmethod
    def stage(cin, cout):
        return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(cin, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())

    def forward(self, z):
        return self.up(self.fc(z).view(-1, 4 * self.width, 4, 4))


class Critic(nn.Module):
    def __init__(self, width):
        super().__init__()
        layers, cin = [], 1
        for k in range(3):
            cout = width * 2**k
            layers += [nn.Conv2d(cin, cout, 4, 2, 1), nn.LeakyReLU(0.2)]
            cin = cout
        self.conv = nn.Sequential(*layers)
        self.out = nn.Linear(cin * 16, 1)

    def forward(self, x):
        return self.out(self.conv(x).flatten(1)).squeeze(1)


def init_weights(module):
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        nn.init.normal_(module.weight, 0.0, 0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


@torch.no_grad()
def clip_weights(net, limit):
    for p in net.parameters():
        p.clamp_(-limit, limit)
