"""Shadow puppets as graphs: joints with what the light shows of them, rods and hinges between them."""

from dataclasses import dataclass

import torch
from torch.utils.data import Dataset

TRAITS = 12


@dataclass
class Puppet:
    joints: torch.Tensor
    rods: torch.Tensor
    role: int

    def __len__(self):
        return len(self.joints)


def carve(draw, roles):
    role = int(torch.randint(roles, (), generator=draw))
    n = int(torch.randint(50, 90, (), generator=draw))
    trunk = (torch.rand(n - 1, generator=draw) * torch.arange(1, n) * (0.3 + 0.7 * role / roles)).long()
    tree = torch.stack((torch.arange(1, n), trunk), 1)
    extra = torch.randint(n, (n // 3, 2), generator=draw)
    rods = torch.cat((tree, extra[extra[:, 0] != extra[:, 1]]))
    joints = torch.randn(n, TRAITS, generator=draw)
    joints[:, 0] = torch.bincount(rods.flatten(), minlength=n).float()
    joints[:, 1 + role % 4] += 0.4
    return Puppet(joints, rods, role)


class Chest(Dataset):
    def __init__(self, count, roles, seed):
        draw = torch.Generator().manual_seed(seed)
        self.puppets = [carve(draw, roles) for _ in range(count)]

    def __len__(self):
        return len(self.puppets)

    def __getitem__(self, i):
        return self.puppets[i]
