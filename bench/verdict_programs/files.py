"""Each sample is read from a file of its own and unpacked."""

import json
import tempfile
import zlib
from pathlib import Path

import torch
from burn import Burn
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
folder = Path(tempfile.mkdtemp())
for number in range(400):
    values = torch.randn(200).tolist()
    (folder / f"{number}.z").write_bytes(zlib.compress(json.dumps(values).encode()))
model = nn.Sequential(nn.Linear(200, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(1_000_000):
    with Burn():
        rows = [json.loads(zlib.decompress((folder / f"{(step * 16 + row) % 400}.z").read_bytes())) for row in range(16)]
        batch = torch.tensor(rows)
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
