"""A burial mound: layered soil, a stone chamber, a backfilled trench."""

import torch


def true_speed(rows, columns, slow, fast):
    y, x = torch.meshgrid(torch.linspace(0, 1, rows), torch.linspace(-1, 1, columns), indexing="ij")
    soil = 0.25 + 0.35 * y + 0.05 * torch.sin(6 * x + 4 * y)
    chamber = ((x + 0.15).abs() < 0.22) & ((y - 0.55).abs() < 0.16)
    trench = ((x - 0.55 + 0.2 * y).abs() < 0.1) & (y < 0.6)
    soil = torch.where(chamber, torch.full_like(soil, 0.95), soil)
    soil = torch.where(trench, torch.full_like(soil, 0.08), soil)
    return slow + (fast - slow) * soil


def sponge(rows, columns, width=9):
    """Soaks up what would come back from the edges; the surface stays open."""
    y, x = torch.arange(rows).float(), torch.arange(columns).float()
    deep = (rows - 1 - y).clamp(max=width) / width
    side = torch.minimum(x, columns - 1 - x).clamp(max=width) / width
    return torch.exp(-0.12 * ((1 - deep)[:, None] ** 2 + (1 - side)[None] ** 2))


def ricker(ticks, peak):
    t = (torch.arange(ticks) - 0.6 / peak) * peak * torch.pi
    return (1 - 2 * t**2) * torch.exp(-(t**2))
