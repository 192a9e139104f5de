"""Height maps of river deltas with their channel masks, carved into smooth noise."""

import torch
import torch.nn.functional as F
from torch import Tensor


def carve(count: int, size: int, seed: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, 1, size // 8, size // 8, generator=g)
    ground = F.interpolate(coarse, size=(size, size), mode="bicubic", align_corners=False)
    y = torch.linspace(0, 1, size)[None, None, :, None]
    x = torch.linspace(0, 1, size)[None, None, None, :]
    mask = torch.zeros(count, 1, size, size)
    for _ in range(3):
        spread = 0.8 * (torch.rand(count, 1, 1, 1, generator=g) - 0.5)
        bend = 6 * torch.rand(count, 1, 1, 1, generator=g)
        centre = 0.5 + spread * y + 0.05 * torch.sin(bend * 3.14 * y)
        mask = torch.maximum(mask, ((x - centre).abs() < 0.03).float())
    height = ground - 0.7 * mask + 0.2 * torch.randn(ground.shape, generator=g)
    return height.contiguous(memory_format=torch.channels_last), mask
