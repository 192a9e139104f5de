from torch import nn
from torch.nn import functional as F

from .rounding import fake_integer, straight_through


class QLinear(nn.Linear):
    bits = 8

    def forward(self, x):
        return F.linear(x, fake_integer(self.weight, self.bits), self.bias)


class QActivation(nn.Module):
    def __init__(self, steps=255.0, top=4.0):
        super().__init__()
        self.steps, self.top = steps, top

    def forward(self, x):
        x = x.clamp(0, self.top)
        return straight_through(x, (x * (self.steps / self.top)).round() * (self.top / self.steps))


def convert(module, bits):
    """Swaps plain layers for their simulated integer versions, in place."""
    for name, child in module.named_children():
        if type(child) is nn.Linear:
            swapped = QLinear(child.in_features, child.out_features)
            swapped.load_state_dict(child.state_dict())
            swapped.bits = bits
            setattr(module, name, swapped)
        elif type(child) is nn.ReLU:
            setattr(module, name, QActivation())
        else:
            convert(child, bits)
    return module
