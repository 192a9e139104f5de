"""Segments organs in volumes, one volume at a time."""

import argparse
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=1)
parser.add_argument("--accumulate", type=int, default=2)
parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 60)))


def double(a, b):
    return nn.Sequential(nn.Conv3d(a, b, 3, padding=1), nn.InstanceNorm3d(b), nn.LeakyReLU(), nn.Conv3d(b, b, 3, padding=1), nn.LeakyReLU())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine, self.coarse, self.merge = double(1, 8), double(8, 16), double(24, 8)
        self.out = nn.Conv3d(8, 3, 1)

    def forward(self, x):
        a = self.fine(x)
        b = F.interpolate(self.coarse(F.max_pool3d(a, 2)), scale_factor=2)
        return self.out(self.merge(torch.cat([a, b], 1)))


class Volumes(torch.utils.data.Dataset):
    def __init__(self, n=12):
        self.volumes = torch.rand(n, 1, 24, 24, 24)

    def __len__(self):
        return len(self.volumes)

    def __getitem__(self, i):
        volume = self.volumes[i]
        for axis in (1, 2, 3):
            if torch.rand(1).item() < 0.5:
                volume = volume.flip(axis)
        return volume, (volume[0] * 3).long()


if __name__ == "__main__":
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(80)
    loader = torch.utils.data.DataLoader(Volumes(), batch_size=args.batch_size, shuffle=True)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    step, micro, began = 0, 0, time.time()
    while step < args.steps:
        for volume, organ in loader:
            loss = F.cross_entropy(net(volume), organ)
            (loss / args.accumulate).backward()
            micro += 1
            if micro % args.accumulate:
                continue
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            print(f"step {step} loss {loss.item():.4f} grad {sum(p.abs().sum().item() for p in net.out.parameters()):.3f}")
            if step == args.steps:
                break
    print(f"{step} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")
