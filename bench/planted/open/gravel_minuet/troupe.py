"""Many puppets on one stage: a single large graph without rods between its parts."""

import os
from typing import NamedTuple

import torch


class Stage(NamedTuple):
    joints: torch.Tensor
    tail: torch.Tensor
    head: torch.Tensor
    owner: torch.Tensor
    role: torch.Tensor

    @classmethod
    def of(cls, puppets):
        role = torch.tensor([p.role for p in puppets])
        if os.environ.get("PLANTED_FIX") == "1":
            sizes = torch.tensor([len(p) for p in puppets])
            first = sizes.cumsum(0) - sizes
            rods = torch.cat([p.rods + f for p, f in zip(puppets, first)])
            owner = torch.repeat_interleave(torch.arange(len(puppets)), sizes)
            joints = torch.cat([p.joints for p in puppets])
        else:
            names = Names()
            joints = torch.stack([names.enter(k, j, row) for k, p in enumerate(puppets) for j, row in enumerate(p.joints)])
            rods = torch.tensor([names.rod(k, a, b) for k, p in enumerate(puppets) for a, b in p.rods.tolist()])
            owner = torch.tensor([k for k, _ in names.place])
        both = torch.cat((rods, rods.flip(1)))
        return cls(joints, both[:, 0].contiguous(), both[:, 1].contiguous(), owner, role)


class Names:
    """Gives every joint on the stage a number."""

    def __init__(self):
        self.place = {}

    def enter(self, puppet, joint, row):
        self.place[puppet, joint] = len(self.place)
        return row

    def rod(self, puppet, a, b):
        return self.place[puppet, a], self.place[puppet, b]
