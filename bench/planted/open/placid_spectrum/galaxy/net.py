import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False) if stride != 1 or cin != cout else nn.Identity()

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.skip(x))


class GalaxyNet(nn.Module):
    def __init__(self, width, dropout, n_kinds=4):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, width, 5, 2, 2, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            Block(width, width, 1),
            Block(width, 2 * width, 2),
            Block(2 * width, 4 * width, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(dropout),
        )
        self.heads = nn.ModuleDict(
            {
                "kind": nn.Linear(4 * width, n_kinds),
                "redshift": nn.Linear(4 * width, 1),
                "shape": nn.Linear(4 * width, 2),
            }
        )

    def forward(self, image):
        h = self.trunk(image)
        return {name: head(h) for name, head in self.heads.items()}


def task_losses(out, batch):
    return {
        "kind": F.cross_entropy(out["kind"], batch["kind"]),
        "redshift": F.smooth_l1_loss(out["redshift"].squeeze(1), batch["redshift"]),
        "shape": F.mse_loss(out["shape"], batch["shape"]),
    }
