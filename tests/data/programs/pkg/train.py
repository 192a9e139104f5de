"""`python -m pkg.train`: a program with a relative import."""

import torch

from .model import make_model


def main():
    torch.set_num_threads(1)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(24):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
