import os
import time

import numpy as np
import torch
from bucket import Bucket
from torch import nn
from torch.utils.data import DataLoader, Dataset

BANDS = ("red", "green", "blue", "nir")


class Scenes(Dataset):
    def __init__(self, n=480):
        self.bucket, self.n = Bucket(), n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        bands = [self.bucket.read(f"scene{i}/{band}", (20, 20)) for band in BANDS]
        scene = torch.from_numpy(np.stack(bands))
        return scene, scene[3].mean() - scene[0].mean()


class VegetationIndex(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(4, 32, 3), nn.SiLU(), nn.Conv2d(32, 32, 3), nn.SiLU())
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.conv(x).mean((2, 3))).squeeze(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(9)
    budget = int(os.environ.get("PLANTED_STEPS", 300))
    loader = DataLoader(Scenes(), batch_size=4, shuffle=True, num_workers=2, persistent_workers=True)
    model = VegetationIndex()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    used, start = 0, time.time()
    for _epoch in range(1000):
        for scene, index in loader:
            loss = nn.functional.mse_loss(model(scene), index)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            used += 1
            if used == budget:
                print(f"{used} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
                return


if __name__ == "__main__":
    main()
