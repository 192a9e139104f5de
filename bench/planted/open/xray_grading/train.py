import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import FIX, Xrays


def network():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(48 * 400, 3),
    )


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return hits / len(loader.dataset)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    limit = int(os.environ.get("PLANTED_STEPS", 400))
    validate_every = 300 if FIX == "2" else 10
    train = DataLoader(Xrays(480, 1, True), batch_size=16, shuffle=True)
    held = DataLoader(Xrays(96, 2, False), batch_size=32)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step, start = 0, time.time()
    while step < limit:
        for x, y in train:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % validate_every == 0:
                print(f"step {step} accuracy {accuracy(model, held):.3f}", flush=True)
            if step == limit:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
