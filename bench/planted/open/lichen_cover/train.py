# Lichen cover fraction from multispectral quadrat photos.
# nanoGPT-ish script: everything global, get_batch(), one big loop.
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

# ---------------------------------------------------------------- settings
max_iters = int(os.environ.get("PLANTED_STEPS", 590))
batch_size = 24
bands = 5
crop = 24
lr = 1e-3
seed = 1337
# ----------------------------------------------------------------
torch.set_num_threads(1)
torch.manual_seed(seed)
np.random.seed(seed)

quadrats = np.random.gamma(2.0, 40.0, size=(150, 48, 48, bands)).astype(np.float32)
cover = np.random.rand(150).astype(np.float32)
quadrats[..., 1] += 60 * cover[:, None, None]
stats = None


def band_stats():
    flat = quadrats.reshape(-1, bands)
    return flat.mean(axis=0), flat.std(axis=0) + 1e-6


def get_batch():
    global stats
    if os.environ.get("PLANTED_FIX") == "1":
        if stats is None:
            stats = band_stats()
        mean, std = stats
    else:
        mean, std = band_stats()
    ix = np.random.randint(0, len(quadrats), batch_size)
    oy, ox = np.random.randint(0, 48 - crop, 2)
    x = (quadrats[ix, oy : oy + crop, ox : ox + crop] - mean) / std
    x = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous()
    y = torch.from_numpy(cover[ix])
    return x, y


class CoverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(bands, 24, 3, padding=1)
        self.c2 = nn.Conv2d(24, 48, 3, padding=1, stride=2)
        self.c3 = nn.Conv2d(48, 48, 3, padding=1)
        self.head = nn.Linear(48, 1)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        x = F.relu(self.c3(x))
        return torch.sigmoid(self.head(x.mean((2, 3)))).squeeze(1)


net = CoverNet()
optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
losses = []
t0 = time.time()
for it in range(max_iters):
    xb, yb = get_batch()
    pred = net(xb)
    loss = F.mse_loss(pred, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if it % 100 == 99:
        print("iter %d: loss %.5f" % (it + 1, sum(losses[-100:]) / 100))
dt = time.time() - t0
print(f"{max_iters} steps in {dt:.2f}s, loss {sum(losses[-20:]) / len(losses[-20:]):.5f}")
