import os
import time

import torch
from torch import nn

import updates
from columns import impressions
from network import ClickNet

BATCH = 256
STEPS = int(os.environ.get("PLANTED_STEPS", 320))


def stream(ids, clicked, generator):
    while True:
        rows = torch.randint(0, len(ids), (BATCH,), generator=generator)
        yield ids[rows], clicked[rows]


def main():
    torch.manual_seed(64)
    model = ClickNet()
    optimizer = updates.for_model(model, lr=2e-3)
    source = stream(*impressions(400_000, seed=65), torch.Generator().manual_seed(66))
    criterion = nn.BCEWithLogitsLoss()
    beginning = time.time()
    for step in range(1, STEPS + 1):
        ids, clicked = next(source)
        loss = criterion(model(ids), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 80 == 0:
            print(f"{step}\t{loss.item():.4f}")
    print(f"{STEPS} steps in {time.time() - beginning:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
