import os
import time

import torch
from claims import BUCKETS, ClaimFiles
from torch import nn
from torch.utils.data import DataLoader

MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 800))


def make_model():
    return nn.Sequential(nn.Linear(BUCKETS, 1536), nn.ReLU(), nn.Linear(1536, 512), nn.ReLU(), nn.Linear(512, 1))


def run():
    torch.set_num_threads(1)
    torch.manual_seed(4)
    loader = DataLoader(ClaimFiles(), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    lossf = nn.BCEWithLogitsLoss()
    n, t = 0, time.time()
    for _epoch in range(100):
        for counts, label in loader:
            logits = model(counts).squeeze(1)
            loss = lossf(logits, label.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n += 1
            if n == MAX_STEPS:
                print(f"{n} steps in {time.time() - t:.2f}s, loss {loss.item():.6f}")
                return


if __name__ == "__main__":
    run()
