"""Weaving drafts: threading, tie-up and treadling make a drawdown of warp over weft."""

import torch

SHAFTS, TREADLES, CLOTH = 8, 8, 32


def threading(n, g):
    """Point, straight or broken: the shaft of each warp thread."""
    at = torch.arange(CLOTH).expand(n, -1)
    start = torch.randint(0, SHAFTS, (n, 1), generator=g)
    straight = (at + start) % SHAFTS
    point = ((at + start) % (2 * SHAFTS - 2) - (SHAFTS - 1)).abs()
    broken = (at + start + 4 * (at // 8 % 2)) % SHAFTS
    return torch.stack([straight, point, broken]).gather(0, torch.randint(0, 3, (1, n, 1), generator=g).expand(1, n, CLOTH))[0]


def tie_up(n, g):
    """Twills: each treadle lifts a run of shafts, one further than the treadle before."""
    over = torch.randint(2, 6, (n, 1, 1), generator=g)
    shaft, treadle = torch.arange(SHAFTS)[:, None], torch.arange(TREADLES)
    return (shaft - treadle) % SHAFTS < over


def drawdown(n, g):
    """Cloths of n drafts: +1 where the warp lies on top."""
    warp, weft, tie = threading(n, g), threading(n, g), tie_up(n, g)
    rows = tie.gather(2, weft[:, None].expand(-1, SHAFTS, -1))
    cloth = rows.gather(1, warp[..., None].expand(-1, -1, CLOTH))
    return cloth[:, None].float() * 1.8 - 0.9
