import os
import time

import torch

from .layout import Layout
from .neighbours import nearest

COUNT, K = 6000, 12


def main():
    torch.set_num_threads(1)
    torch.manual_seed(70)
    steps = int(os.environ.get("PLANTED_STEPS", 120))
    points = torch.randn(COUNT, 32) + torch.randn(10, 32)[torch.randint(0, 10, (COUNT,))] * 3
    graph = nearest(points, K)
    model = Layout(COUNT)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    start = time.time()
    for _ in range(steps):
        i = torch.randint(0, COUNT, (2048,))
        loss = model(i, graph[i], torch.randint(0, COUNT, (2048, 10)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


main()
