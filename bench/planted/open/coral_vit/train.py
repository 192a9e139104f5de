#!/usr/bin/env python3
"""Coral health from transect photos, in the manner of timm's train.py."""

import argparse
import os
import time

import torch
import torch.nn as nn
from models import create_model

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="reef_vit_nano")
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--lr", type=float, default=5e-4)
parser.add_argument("--smoothing", type=float, default=0.1)
parser.add_argument("--grad-checkpointing", action="store_true")
parser.add_argument("--log-interval", type=int, default=50)
parser.add_argument("--updates", type=int, default=int(os.environ.get("PLANTED_STEPS", 360)))


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(1, self.count)


def photos(n=640):
    g = torch.Generator().manual_seed(80)
    y = torch.randint(0, 8, (n,), generator=g)
    x = torch.randn(n, 3, 32, 32, generator=g)
    x[torch.arange(n), y % 3, :, :] += (y[:, None, None].float() - 4) / 4
    return x, y


def train_one_epoch(epoch, model, data, optimizer, loss_fn, args, left):
    losses = AverageMeter()
    x, y = data
    model.train()
    perm = torch.randperm(len(y))
    updates = 0
    for k in range(0, len(y), args.batch_size):
        idx = perm[k : k + args.batch_size]
        loss = loss_fn(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), len(idx))
        updates += 1
        if updates % args.log_interval == 0:
            print(f"Train: {epoch} [{updates}] Loss: {losses.avg:.4f}")
        if updates == left:
            break
    return updates, losses.avg


def main():
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(42)
    model = create_model(args.model)
    if args.grad_checkpointing and os.environ.get("PLANTED_FIX") != "1":
        model.set_grad_checkpointing()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=args.smoothing)
    data = photos()
    done, epoch, loss = 0, 0, 0.0
    start = time.time()
    while done < args.updates:
        n, loss = train_one_epoch(epoch, model, data, optimizer, loss_fn, args, args.updates - done)
        done, epoch = done + n, epoch + 1
    print(f"{done} steps in {time.time() - start:.2f}s, loss {loss:.4f}")


if __name__ == "__main__":
    main()
