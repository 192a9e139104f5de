import argparse
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import prepare
from dataset import CallDataset
from model import CallNet


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default=str(Path(__file__).parent / "features"))
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--max-steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 400)))
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


def train_one_epoch(model, loader, optimizer, scheduler, step, max_steps):
    model.train()
    loss = None
    for spec, label in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(spec), label, label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")
        if step >= max_steps:
            break
    return step, loss.item()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = total = 0
    for spec, label in loader:
        hits += (model(spec).argmax(1) == label).sum().item()
        total += label.numel()
    return hits / total


def main():
    args = parse_args()
    data = Path(args.data)
    if not (data / "stats.npz").exists():
        prepare.build(data)
    torch.manual_seed(args.seed)

    train_set = CallDataset(data, "train", augment=True)
    valid_set = CallDataset(data, "valid")
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid_set, batch_size=64)

    model = CallNet(len(prepare.CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.max_steps)

    step, epoch = 0, 0
    start = time.time()
    while step < args.max_steps:
        step, loss = train_one_epoch(model, train_loader, optimizer, scheduler, step, args.max_steps)
        epoch += 1
    elapsed = time.time() - start
    print(f"{epoch} epochs, validation accuracy {evaluate(model, valid_loader):.3f}")
    print(f"{step} steps in {elapsed:.2f} s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
