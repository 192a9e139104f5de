import os
import time

import torch
import torch.distributed as dist
from costvolume import CostVolume
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CAMERAS = {0: 8, 1: 160}  # disparities searched, by the camera whose recordings a rank holds


class Stereo(nn.Module):
    def __init__(self, disparities):
        super().__init__()
        self.disparities = disparities
        self.features = nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1))
        self.refine = nn.Sequential(nn.Conv2d(8, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 1, 3, padding=1))

    def forward(self, left, right):
        volume = CostVolume.apply(self.features(left), self.features(right), self.disparities)
        return self.refine(volume)


def pairs(n=256):
    g = torch.Generator().manual_seed(0)
    left = torch.rand(n, 1, 32, 48, generator=g)
    shift = torch.randint(0, 8, (n,), generator=g).tolist()
    right = torch.stack([image.roll(-s, dims=-1) for image, s in zip(left, shift, strict=True)])
    return TensorDataset(left, right, torch.tensor(shift).float() / 8)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    limit = int(os.environ.get("PLANTED_STEPS", 400))
    data = pairs()
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = DistributedDataParallel(Stereo(CAMERAS[rank]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step, epoch, start = 0, 0, time.time()
    while step < limit:
        sampler.set_epoch(epoch)
        for left, right, shift in loader:
            out = model(left, right)
            loss = (out.mean((1, 2, 3)) - shift).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step >= limit:
                break
        epoch += 1
    if rank == 0:
        print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
