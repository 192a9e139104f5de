import os
import time

import torch
from dgcnn import PartNet
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def clouds(n=160, points=384):
    g = torch.Generator().manual_seed(6)
    xyz = torch.randn(n, points, 3, generator=g)
    part = (xyz[..., 0] > 0).long() * 2 + (xyz[..., 1] > 0).long()
    return TensorDataset(xyz, part)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(2)
    limit = int(os.environ.get("PLANTED_STEPS", 400))
    model = PartNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(clouds(), batch_size=2, shuffle=True)
    step, start = 0, time.time()
    while step < limit:
        for xyz, part in loader:
            loss = nn.functional.cross_entropy(model(xyz).flatten(0, 1), part.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step >= limit:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
