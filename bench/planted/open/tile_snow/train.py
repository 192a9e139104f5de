import os
import random
import time

import torch
from tiles import CHANNELS, TileClient, start_agency
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

torch.set_num_threads(1)
TILES = 160


class SnowTiles(IterableDataset):
    def __init__(self, port, seed):
        self.client = TileClient(port)
        self.random = random.Random(seed)
        self.kept = {}
        if os.environ.get("PLANTED_FIX", "0") == "1":
            self.kept = {n: self.client.get(n) for n in range(TILES)}

    def fetch(self, number):
        if number in self.kept:
            return self.kept[number]
        return self.client.get(number)

    def __iter__(self):
        while True:
            n = self.random.randrange(TILES)
            x = torch.from_numpy(self.fetch(n).copy())
            yield x, x[:2].mean(0, keepdim=True)


def unet(width=44):
    return nn.Sequential(
        nn.Conv2d(CHANNELS, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(2 * width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(2 * width, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 1, 1),
    )


def main():
    torch.manual_seed(5)
    process, port = start_agency()
    stream = iter(DataLoader(SnowTiles(port, seed=6), batch_size=8))
    model = unet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    n_steps = int(os.environ.get("PLANTED_STEPS", 450))
    smooth = None
    begin = time.time()
    for step in range(n_steps):
        image, cover = next(stream)
        loss = nn.functional.mse_loss(model(image), cover)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
        if step % 50 == 49:
            print(f"{step + 1:5d}  {smooth:.5f}")
    took = time.time() - begin
    process.terminate()
    print(f"{n_steps} steps in {took:.2f}s, loss {smooth:.5f}")


if __name__ == "__main__":
    main()
