#!/usr/bin/env python3
"""Training script; any entry of config.yaml can be given on the command line."""

import argparse
import os
import time

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader

from lib.models import create_model
from lib.repro import make_repeatable
from lib.spots import Newts


def parse():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "config.yaml")) as file:
        defaults = yaml.safe_load(file)
    parser = argparse.ArgumentParser()
    for name, value in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    return parser.parse_args()


def train_one_epoch(epoch, model, loader, criterion, optimizer, args, state):
    model.train()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state["steps"] += 1
        state["loss"] = loss.detach()
        if i % args.log_interval == 0:
            print(f"Train: {epoch} [{i:>4d}/{len(loader)}]  Loss: {loss.item():.4f}")
        if state["steps"] >= state["limit"]:
            return


def main():
    args = parse()
    make_repeatable(args.seed, args.strict)
    loader = DataLoader(Newts(), batch_size=args.batch_size, shuffle=True, num_workers=0, drop_last=True)
    model = create_model(args.model, num_classes=120)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    criterion = nn.CrossEntropyLoss(label_smoothing=args.smoothing)
    state = {"steps": 0, "limit": int(os.environ.get("PLANTED_STEPS", 10**9)), "loss": None}
    start = time.perf_counter()
    for epoch in range(args.epochs):
        train_one_epoch(epoch, model, loader, criterion, optimizer, args, state)
        if state["steps"] >= state["limit"]:
            break
    print(f"{state['steps']} steps in {time.perf_counter() - start:.3f}s, loss {state['loss'].item():.5f}")


if __name__ == "__main__":
    main()
