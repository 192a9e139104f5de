import os
import sys

import torch
import yaml
from torch.utils.data import DataLoader

from leaves.data import outlines
from leaves.engine import train
from leaves.net import hazelnet

if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "default"
    with open("configs.yaml") as file:
        cfg = yaml.safe_load(file)[name]
    torch.manual_seed(cfg["seed"])
    torch.set_num_threads(1)
    steps = int(os.environ.get("PLANTED_STEPS", cfg["steps"]))
    train_loader = DataLoader(outlines(3200, cfg["classes"], seed=1), cfg["batch"], shuffle=True, drop_last=True)
    test_loader = DataLoader(outlines(256, cfg["classes"], seed=2), 64)
    model = hazelnet(cfg["classes"], cfg["width"])
    optimizer = torch.optim.AdamW(model.parameters(), cfg["lr"], weight_decay=cfg["weight_decay"])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps, 1))
    done, seconds, loss = train(model, train_loader, test_loader, optimizer, schedule, steps, cfg["log_every"])
    print(f"{done} steps in {seconds:.3f}s, loss {loss:.5f}")
