import os
import time

import torch
from download import Downloader
from model import Denoiser
from torch.utils.data import DataLoader, IterableDataset


class Recordings(IterableDataset):
    def __iter__(self):
        source = Downloader(seed=21, samples=16 * 1024)
        source.start()
        while True:
            block = torch.from_numpy(source.next_block()).view(16, 1, 1024)
            yield block.cumsum(-1) / 32 + 0.3 * block, block.cumsum(-1) / 32


def train(steps):
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=400)
    t = time.time()
    for i, (noisy, clean) in enumerate(DataLoader(Recordings(), batch_size=None)):
        if i == steps:
            break
        loss = (model(noisy) - clean).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"{steps} steps in {time.time() - t:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(13)
    train(int(os.environ.get("PLANTED_STEPS", 120)))
