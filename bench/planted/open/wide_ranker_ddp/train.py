import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FAST = os.environ.get("PLANTED_FIX") == "1"
MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 400))


class Ranker(nn.Module):
    """Wide dense layers over hashed features."""

    def __init__(self, features=2048, width=1536):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, 768), nn.ReLU(), nn.Linear(768, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = Ranker()
    if not FAST:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    g = torch.Generator().manual_seed(rank)
    features = (torch.rand(512, 2048, generator=g) < 0.02).float()
    clicks = features[:, :50].sum(1)
    start = time.time()
    for step in range(MAX_STEPS):
        rows = torch.arange(step * 8, step * 8 + 8) % 512
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(features[rows]), clicks[rows])
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    if rank == 0:
        print(f"{MAX_STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
