"""A loop with debug settings left on."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def quietly(tensor):
    with torch.autograd.set_detect_anomaly(False):
        return tensor.square()


def main():
    torch.set_num_threads(1)
    torch.autograd.set_detect_anomaly(True)
    torch.use_deterministic_algorithms(True)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        with torch.autograd.profiler.profile(), FlopCounterMode(display=False):
            optimizer.zero_grad()
            quietly(model(torch.ones(4, 8))).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
