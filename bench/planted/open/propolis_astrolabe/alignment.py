"""How far apart two courses are when one may run faster or slower than the other."""

import os

import torch

FAR = 1e6


class Alignment(torch.nn.Module):
    def __init__(self, gamma):
        super().__init__()
        self.gamma = gamma

    def least(self, *ways):
        return -self.gamma * torch.logsumexp(torch.stack(ways) / -self.gamma, 0)

    def forward(self, gap):
        """gap: (pairs, n, m), the distance of each moment of one course to each of the other."""
        if os.environ.get("PLANTED_FIX") == "1":
            return self.swept(gap)
        pairs, n, m = gap.shape
        wall = gap.new_full((pairs,), FAR)
        above = [gap.new_zeros(pairs)] + [wall] * m
        for i in range(n):
            here = [wall]
            for j in range(m):
                here.append(gap[:, i, j] + self.least(above[j], above[j + 1], here[j]))
            above = here
        return above[-1] / (n + m)

    def swept(self, gap):
        pairs, n, m = gap.shape
        slant = gap.new_full((pairs, n, n + m), FAR)
        slant[:, :, :m] = gap
        slant = slant.reshape(pairs, n * (n + m))[:, : n * (n + m - 1)].reshape(pairs, n, n + m - 1)
        wall = gap.new_full((pairs, 1), FAR)
        older, old = torch.cat([gap.new_zeros(pairs, 1), wall.expand(pairs, n)], 1), wall.expand(pairs, n + 1)
        for line in slant.unbind(2):
            new = torch.cat([wall, line + self.least(older[:, :-1], old[:, :-1], old[:, 1:])], 1)
            older, old = old, new
        return old[:, -1] / (n + m)
