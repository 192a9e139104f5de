import atexit
import http.client
import os
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 350))


class TileStream(IterableDataset):
    def __init__(self, port, shards):
        self.port, self.shards = port, shards

    def fetch(self, connection, number):
        connection.request("GET", f"/tiles/{number}")
        payload = connection.getresponse().read()
        return torch.from_numpy(np.frombuffer(payload, dtype=np.float32).reshape(8, 3, 24, 24).copy())

    def __iter__(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        for number in range(self.shards):
            tiles = self.fetch(connection, number)
            target = tiles.mean(dim=(1, 2, 3)) * 20
            yield tiles, target
        connection.close()


def build():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.GELU(),
        nn.Conv2d(32, 48, 3, stride=2, padding=1),
        nn.GELU(),
        nn.Conv2d(48, 48, 3, padding=1),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(48 * 144, 1),
    )


def train(port):
    torch.manual_seed(2)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(TileStream(port, 100), batch_size=None)
    step, began = 0, time.time()
    while step < MAX_STEPS:
        for tiles, target in loader:
            loss = nn.functional.mse_loss(model(tiles).squeeze(1), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step >= MAX_STEPS:
                break
        print("pass done, loss", round(loss.item(), 4), flush=True)
    print(f"{step} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    store = subprocess.Popen([sys.executable, "store.py"], stdout=subprocess.PIPE, text=True)
    atexit.register(store.terminate)
    train(int(store.stdout.readline()))
