"""The network: residual strata over the depth, dilated so that the last one sees the whole core."""

import os

from torch import nn
from torch.utils.checkpoint import checkpoint


class Stratum(nn.Module):
    def __init__(self, width, reach):
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.wide = nn.Conv1d(width, width, 5, padding=2 * reach, dilation=reach)
        self.back = nn.Conv1d(width, width, 1)

    def forward(self, h):
        return h + self.back(nn.functional.gelu(self.wide(self.norm(h))))


def sink(strata, h):
    """Down through the strata, the upper half first."""
    if len(strata) == 1:
        return strata[0](h)
    half = len(strata) // 2
    if os.environ.get("PLANTED_FIX") == "1":
        return sink(strata[half:], sink(strata[:half], h))
    h = checkpoint(sink, strata[:half], h, use_reentrant=False, preserve_rng_state=False)
    return checkpoint(sink, strata[half:], h, use_reentrant=False, preserve_rng_state=False)


class Chronicle(nn.Module):
    def __init__(self, taxa, width, strata):
        super().__init__()
        self.top = nn.Conv1d(taxa, width, 1)
        self.strata = nn.ModuleList(Stratum(width, 2 ** (n % 6)) for n in range(strata))
        self.age = nn.Conv1d(width, 1, 1)

    def forward(self, counts):
        h = sink(list(self.strata), self.top(counts))
        return nn.functional.softplus(self.age(h)).squeeze(1).cumsum(1) / counts.shape[-1]
