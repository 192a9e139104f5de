import math

import torch


def sample_shapes(count, points, seed):
    """Spheres, boxes, cylinders and tori with noise and a random turn about z."""
    g = torch.Generator().manual_seed(seed)
    u, v, w = torch.rand(3, count, points, generator=g)
    a = 2 * math.pi * u
    z = 2 * v - 1
    sphere = torch.stack([(1 - z**2).sqrt() * a.cos(), (1 - z**2).sqrt() * a.sin(), z], -1)
    cylinder = torch.stack([0.7 * a.cos(), 0.7 * a.sin(), z], -1)
    b = 2 * math.pi * v
    torus = torch.stack([(0.7 + 0.3 * b.cos()) * a.cos(), (0.7 + 0.3 * b.cos()) * a.sin(), 0.3 * b.sin()], -1)
    box = torch.stack([2 * u - 1, z, 2 * w - 1], -1)
    box = box / box.abs().amax(-1, keepdim=True) * 0.8

    label = torch.randint(4, (count,), generator=g)
    cloud = torch.stack([sphere, box, cylinder, torus], 1)[torch.arange(count), label]
    turn = 2 * math.pi * torch.rand(count, generator=g)
    rot = torch.zeros(count, 3, 3)
    rot[:, 0, 0], rot[:, 0, 1] = turn.cos(), -turn.sin()
    rot[:, 1, 0], rot[:, 1, 1], rot[:, 2, 2] = turn.sin(), turn.cos(), 1
    cloud = cloud @ rot + 0.08 * torch.randn(cloud.shape, generator=g)
    return cloud, label
