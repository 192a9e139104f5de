import torch
from torch import nn
from torch.nn.functional import softplus


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, h):
        return h + self.b(nn.functional.silu(self.a(h)))


def tower(enter, leave, width, depth):
    return nn.Sequential(nn.Linear(enter, width), *(Residual(width) for _ in range(depth)), nn.SiLU(), nn.Linear(width, leave))


def judge_loss(judge, real, fake, r1):
    real = real.requires_grad_()
    verdict = judge(real)
    (slope,) = torch.autograd.grad(verdict.sum(), real, create_graph=True)
    return softplus(-verdict).mean() + softplus(judge(fake)).mean() + r1 / 2 * slope.square().sum(1).mean()


def draw_loss(judge, fake):
    return softplus(-judge(fake)).mean()
