"""Strips of writing: each letter is a small glyph, set one after the other with a little noise."""

import torch

LETTERS = "abcdefghijklmnopqrstuvwxyz "
HEIGHT, PITCH = 12, 6


class Strips:
    def __init__(self, seed: int, length: int = 22):
        self.g = torch.Generator().manual_seed(seed)
        self.length = length
        self.glyphs = (torch.rand(len(LETTERS), HEIGHT, PITCH, generator=self.g) < 0.4).float()

    def batch(self, count: int) -> tuple:
        letters = torch.randint(len(LETTERS), (count, self.length), generator=self.g)
        page = self.glyphs[letters].permute(0, 2, 1, 3).reshape(count, HEIGHT, self.length * PITCH)
        page = page + 0.3 * torch.randn(page.shape, generator=self.g)
        return page, letters + 1
