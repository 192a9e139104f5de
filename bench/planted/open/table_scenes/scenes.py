import os

import torch

SLOTS = 240 if os.environ.get("PLANTED_FIX") != "1" else 16
FIELDS = 10


def draw_scenes(count, g):
    """Objects on a table: `present` says which of the slots hold one."""
    objects = torch.zeros(count, SLOTS, FIELDS)
    present = torch.zeros(count, SLOTS, dtype=torch.bool)
    sizes = torch.randint(8, 17, (count,), generator=g).tolist()
    for scene, size in enumerate(sizes):
        objects[scene, :size] = torch.randn(size, FIELDS, generator=g)
        present[scene, :size] = True
    return objects, present
