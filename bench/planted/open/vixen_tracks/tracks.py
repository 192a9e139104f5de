import torch


class PawPrints:
    """Outline descriptors of paw prints, several prints of each fox."""

    def __init__(self, foxes, prints, size, generator):
        shape = torch.randn(foxes, size, generator=generator)
        blur = torch.randn(foxes, prints, size, generator=generator)
        self.outlines = shape[:, None] + 1.6 * blur
        self.generator = generator

    def draw(self, foxes, prints):
        who = torch.randperm(len(self.outlines), generator=self.generator)[:foxes]
        which = torch.randint(0, self.outlines.shape[1], (foxes, prints), generator=self.generator)
        x = self.outlines[who[:, None], which].flatten(0, 1)
        return x, torch.arange(foxes).repeat_interleave(prints)
