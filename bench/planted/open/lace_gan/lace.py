import torch


def lace(count: int, size: int = 16) -> torch.Tensor:
    """Symmetric patterns of threads, in [-1, 1]."""
    g = torch.Generator().manual_seed(0)
    quarter = (torch.rand(count, size // 2, size // 2, generator=g) < 0.35).float()
    quarter = torch.nn.functional.avg_pool2d(quarter.unsqueeze(1), 3, stride=1, padding=1)
    half = torch.cat([quarter, quarter.flip(3)], 3)
    whole = torch.cat([half, half.flip(2)], 2)
    return (whole * 3 - 1).clamp(-1, 1)
