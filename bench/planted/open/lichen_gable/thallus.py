"""A thallus as a cellular automaton: each cell looks at its four neighbours and adds a little to itself."""

import torch


def weights(channels, hidden):
    first = torch.randn(4 * channels, hidden) * (4 * channels) ** -0.5
    bias = torch.zeros(hidden)
    second = torch.randn(hidden, channels) * 0.02
    return [w.requires_grad_() for w in (first, bias, second)]


def look_around(cells):
    north, south = cells.roll(1, 1), cells.roll(-1, 1)
    west, east = cells.roll(1, 2), cells.roll(-1, 2)
    return torch.cat([cells, south - north, east - west, (north + south + west + east) / 4 - cells], -1)


def grow(cells, w):
    first, bias, second = w
    seen = look_around(cells).flatten(0, 2)
    change = torch.addmm(bias, seen, first).relu() @ second
    return cells + change.view_as(cells)


def through_seasons(cells, w, seasons):
    for _ in range(seasons):
        cells = grow(cells, w)
    return cells


def spores(n, side, channels, generator):
    cells = torch.zeros(n, side, side, channels)
    at = torch.randint(side // 4, 3 * side // 4, (n, 2), generator=generator)
    cells[torch.arange(n), at[:, 0], at[:, 1], 3:] = 1.0
    return cells, at


def gravestone(at, side, generator):
    """What the photograph shows after some years: rings of yellow and grey about the first spore."""
    line = torch.arange(side, dtype=torch.float32)
    far = ((line[None, :, None] - at[:, :1, None]) ** 2 + (line[None, None] - at[:, 1:, None]) ** 2).sqrt()
    radius = 4 + 6 * torch.rand(len(at), 1, 1, generator=generator)
    disc = torch.sigmoid(radius - far)
    return torch.stack([disc, disc * torch.cos(far / 3) ** 2, disc * far / radius], -1)
