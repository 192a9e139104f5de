"""Steps so short that the probe's own cost is a visible part of them. Arguments: style, file for the marks."""

import sys

import torch
from own_loops import STEPS, Rows, loop_over, update
from timed import step, timed, write
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader


def tiny():
    """Steps of a few hundred microseconds."""
    loop_over(DataLoader(Rows(4 * STEPS * 10, 8), batch_size=4), nn.Linear(8, 10))


def tiny_get_batch():
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def batch():
        return torch.randn(16, 8), torch.randn(16, 1)

    for _ in range(STEPS * 10):
        with timed("Data"):
            x, y = batch()
        with timed("Fwd"):
            loss = F.mse_loss(model(x), y)
        update(optimizer, loss)
        step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    step()
    globals()[sys.argv[1]]()
    write()
