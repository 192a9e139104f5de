"""Classify point clouds with DGCNN.  Settings: config.json"""

import json
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from model import DGCNN
from shapes import sample_shapes

cfg = json.loads((Path(__file__).parent / "config.json").read_text())
train_cfg = cfg["train"]
steps = int(os.environ.get("PLANTED_STEPS", train_cfg["steps"]))
torch.manual_seed(train_cfg["seed"])

clouds, labels = sample_shapes(cfg["data"]["clouds"], cfg["data"]["points"], cfg["data"]["seed"])
model = DGCNN(cfg["model"])
optimizer = torch.optim.Adam(model.parameters(), lr=train_cfg["lr"])
model.train()

running, seen = torch.zeros(()), 0
start = time.perf_counter()
for step in range(1, steps + 1):
    idx = torch.randint(len(clouds), (train_cfg["batch_size"],))
    scale = 0.8 + 0.4 * torch.rand(len(idx), 1, 3)
    logits = model(clouds[idx] * scale)
    loss = F.cross_entropy(logits, labels[idx], label_smoothing=train_cfg["label_smoothing"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    running += (logits.argmax(1) == labels[idx]).float().mean()
    seen += 1
    if step % train_cfg["log_every"] == 0:
        print(f"step {step}: loss {loss.item():.4f} acc {running.item() / seen:.3f}")
        running, seen = torch.zeros(()), 0
elapsed = time.perf_counter() - start
print(f"{steps} steps in {elapsed:.2f} s, loss {loss.item():.6f}")
