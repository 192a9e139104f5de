import os
import tempfile
import time

import torch
from ears import Ears
from journal import Journal
from torch import nn
from torch.utils.data import DataLoader


def counter():
    return nn.Sequential(nn.Conv2d(3, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 1))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(16)
    steps = int(os.environ.get("PLANTED_STEPS", 200))
    loader = DataLoader(Ears(), batch_size=16, shuffle=True, drop_last=True)
    net = counter()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    done, start = 0, time.time()
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(os.path.join(folder, "journal.jsonl"))
        while done < steps:
            for photos, density in loader:
                maps = net(photos)
                loss = nn.functional.mse_loss(maps, density)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                done += 1
                journal.note(done, loss.item(), maps.detach())
                if done >= steps:
                    break
    print(f"{done} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
