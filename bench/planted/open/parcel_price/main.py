"""Sale price of a parcel from the attributes that the cadastre holds about it and about its neighbours."""

import os
import tempfile
import time

import numpy as np
import torch
from service import COLUMNS, Cadastre, table
from torch import nn

torch.set_num_threads(1)

N = 5000
NEIGHBOURS = 3
BATCH = 8
STEPS = int(os.environ.get("PLANTED_STEPS", 500))


def prices(rng):
    rows = table(N)
    w = rng.normal(size=COLUMNS) / np.sqrt(COLUMNS)
    return (rows @ w + 0.1 * rng.normal(size=N)).astype(np.float32)


def get_batch(cadastre, price, rng):
    parcels = rng.integers(0, N - NEIGHBOURS, BATCH)
    wanted = parcels[:, None] + np.arange(NEIGHBOURS)
    if os.environ.get("PLANTED_FIX") == "1":
        rows = cadastre.attributes(wanted.reshape(-1)).reshape(BATCH, NEIGHBOURS, COLUMNS)
    else:
        rows = np.stack([np.stack([cadastre.attributes(int(i)) for i in group]) for group in wanted])
    return torch.from_numpy(rows), torch.from_numpy(price[parcels])


class Valuer(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.each = nn.Sequential(nn.Linear(COLUMNS, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.mix = nn.Sequential(nn.Linear(NEIGHBOURS * width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, rows):
        return self.mix(self.each(rows).flatten(1)).squeeze(1)


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    price = prices(np.random.default_rng(9))
    with tempfile.TemporaryDirectory() as folder:
        cadastre = Cadastre(os.path.join(folder, "sock"), N)
        model = Valuer()
        opt = torch.optim.Adam(model.parameters(), lr=2e-4)
        history = []
        start = time.time()
        for step in range(1, STEPS + 1):
            rows, target = get_batch(cadastre, price, rng)
            loss = nn.functional.huber_loss(model(rows), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            history.append(float(loss))
            if step % 50 == 0:
                print(step, round(float(np.mean(history[-50:])), 4), flush=True)
        took = time.time() - start
        cadastre.close()
    print(f"{STEPS} steps in {took:.2f}s, loss {np.mean(history[-20:]):.4f}")


if __name__ == "__main__":
    main()
