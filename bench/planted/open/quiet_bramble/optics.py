"""Brown-Conrady lens model for the fixed front camera."""

import os

import torch
import torch.nn.functional as F

FIXED = os.environ.get("PLANTED_FIX") == "1"


def straight_grid(camera, height, width):
    ys, xs = torch.meshgrid(torch.arange(height, dtype=torch.float32), torch.arange(width, dtype=torch.float32), indexing="ij")
    x0 = (xs - camera["cx"]) / camera["focal"]
    y0 = (ys - camera["cy"]) / camera["focal"]
    x, y = x0.clone(), y0.clone()
    for _ in range(camera["iterations"]):
        r2 = x * x + y * y
        radial = 1 + camera["k1"] * r2 + camera["k2"] * r2 * r2
        dx = 2 * camera["p1"] * x * y + camera["p2"] * (r2 + 2 * x * x)
        dy = camera["p1"] * (r2 + 2 * y * y) + 2 * camera["p2"] * x * y
        x = (x0 - dx) / radial
        y = (y0 - dy) / radial
    u = x * camera["focal"] + camera["cx"]
    v = y * camera["focal"] + camera["cy"]
    return torch.stack([2 * u / (width - 1) - 1, 2 * v / (height - 1) - 1], dim=-1)


def straighten(camera, height, width):
    if FIXED:
        table = straight_grid(camera, height, width)

        def apply(frame):
            return F.grid_sample(frame[None, None], table[None], align_corners=True)[0]
    else:

        def apply(frame):
            grid = straight_grid(camera, height, width)
            return F.grid_sample(frame[None, None], grid[None], align_corners=True)[0]

    return apply


def brightness(low, high, rng):
    def apply(frame):
        return frame * float(rng.uniform(low, high))

    return apply


def centre():
    def apply(frame):
        return (frame - frame.mean()) / (frame.std() + 1e-5)

    return apply


def chain(*steps):
    def apply(frame):
        for step in steps:
            frame = step(frame)
        return frame

    return apply
