import os
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
UPDATES = int(os.environ.get("PLANTED_STEPS", 900))
ACCUMULATE, MICRO = 2, 192

g = torch.Generator().manual_seed(5)
lines = torch.rand(4096, 3, 1, generator=g)
axis = torch.linspace(0, 1, 512)
spectra = torch.exp(-((axis - lines) ** 2) * 2000).sum(1)

model = nn.Sequential(nn.Linear(512, 384), nn.ReLU(), nn.Linear(384, 24), nn.ReLU(), nn.Linear(24, 384), nn.ReLU(), nn.Linear(384, 512))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
start = time.time()
for update in range(UPDATES):
    total = 0.0
    for k in range(ACCUMULATE):
        at = (update * ACCUMULATE + k) * MICRO % (len(spectra) - MICRO)
        batch = spectra[at : at + MICRO]
        loss = nn.functional.mse_loss(model(batch), batch) / ACCUMULATE
        loss.backward()
        total += loss.detach()
    optimizer.step()
    optimizer.zero_grad()
    if update % 50 == 0:
        print(update, float(total), flush=True)
print(f"{UPDATES} steps in {time.time() - start:.2f}s, loss {float(total):.6f}")
