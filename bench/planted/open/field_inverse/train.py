import os
import tempfile
import time

import torch
from journal import Journal

torch.set_num_threads(1)
ITERATIONS = int(os.environ.get("PLANTED_STEPS", 700))


def init(sizes, g):
    params = {}
    for k, (a, b) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        params[f"w{k}"] = (torch.randn(a, b, generator=g) * a**-0.5).requires_grad_()
        params[f"b{k}"] = torch.zeros(b, requires_grad=True)
    return params


def predict(params, x, layers):
    for k in range(layers):
        x = x @ params[f"w{k}"] + params[f"b{k}"]
        if k < layers - 1:
            x = torch.tanh(x)
    return x


def main():
    g = torch.Generator().manual_seed(8)
    params = init([2, 256, 256, 256, 1], g)
    points = torch.rand(384, 2, generator=g) * 4 - 2
    field = torch.sin(2 * points[:, :1]) * torch.exp(-points[:, 1:].square())
    lr = 0.01
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(folder)
        start = time.time()
        for it in range(1, ITERATIONS + 1):
            loss = (predict(params, points, 4) - field).square().mean()
            loss.backward()
            with torch.no_grad():
                for p in params.values():
                    p -= lr * p.grad
            journal.add(it, loss, params)
            for p in params.values():
                p.grad = None
        print(f"{ITERATIONS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
