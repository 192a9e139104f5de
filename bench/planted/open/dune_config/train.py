"""python train.py config.yaml"""

import os
import sys
import time

import torch
import yaml
from dunes import profiles
from keeper import Keeper
from torch import nn


def load(path):
    with open(path) as f:
        cfg = yaml.safe_load(f)
    cfg["run"]["steps"] = int(os.environ.get("PLANTED_STEPS", cfg["run"]["steps"]))
    if os.environ.get("PLANTED_FIX") == "1":
        cfg["run"]["save_every"] = 200
    return cfg


def make_model(inputs, width, depth):
    layers = [nn.Linear(inputs, width), nn.Tanh()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.Tanh()]
    layers.append(nn.Linear(width, 1))
    return nn.Sequential(*layers)


def main(cfg):
    torch.set_num_threads(1)
    torch.manual_seed(cfg["data"]["seed"])
    height, moved = profiles(cfg["data"]["samples"], cfg["model"]["inputs"], cfg["data"]["seed"])
    model = make_model(cfg["model"]["inputs"], cfg["model"]["width"], cfg["model"]["depth"])
    optimizer = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[cfg["optim"]["name"]](model.parameters(), lr=cfg["optim"]["lr"])
    keeper = Keeper(cfg["run"]["folder"], cfg["run"]["save_every"])
    last = 0.0
    began = time.time()
    for step in range(1, cfg["run"]["steps"] + 1):
        pick = torch.randint(0, len(moved), (cfg["data"]["batch"],))
        loss = nn.functional.mse_loss(model(height[pick]).squeeze(1), moved[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = loss.item() if step == 1 else 0.9 * last + 0.1 * loss.item()
        if step % cfg["run"]["print_every"] == 0:
            print(f"{step:6d} {last:.4f}")
        keeper.after(step, model, optimizer)
    took = time.time() - began
    print(f"{cfg['run']['steps']} steps in {took:.2f}s, loss {last:.4f}")


if __name__ == "__main__":
    main(load(sys.argv[1]))
