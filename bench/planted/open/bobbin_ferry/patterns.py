"""Thread tensions along the pins of bobbin lace, made up from a few repeats."""

import torch


class Pillow:
    def __init__(self, pins, seed):
        self.dice = torch.Generator().manual_seed(seed)
        self.pin = torch.linspace(0, 6.2832, pins)

    def draw(self, count):
        repeat = torch.randint(2, 9, (count, 1), generator=self.dice)
        shift, twist = (torch.rand(2, count, 1, generator=self.dice) * 6.2832).unbind()
        edge = 0.3 * torch.sin(2 * repeat * self.pin + twist)
        return torch.tanh(torch.sin(repeat * self.pin + shift) + edge)
