"""Train a small U-Net on synthetic tiles: accumulation over micro-batches, warm-up and cosine per update."""
import argparse
import math
import os

import torch
import torch.nn.functional as F
from data import Tiles
from torch.utils.data import DataLoader
from unet import UNet

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--micro-batch", type=int, default=8)
parser.add_argument("--accumulate", type=int, default=3)
parser.add_argument("--lr", type=float, default=6e-3)
parser.add_argument("--clip", type=float, default=0.5)
parser.add_argument("--resume")
args = parser.parse_args()


def dice_loss(logits, mask):
    probabilities = logits.softmax(1)
    wanted = F.one_hot(mask, 3).permute(0, 3, 1, 2).float()
    overlap = (probabilities * wanted).sum((0, 2, 3))
    total = (probabilities + wanted).sum((0, 2, 3))
    return 1 - ((2 * overlap + 1) / (total + 1)).mean()


def evaluate(model, loader):
    model.eval()
    confusion = torch.zeros(3, 3, dtype=torch.long)
    loss, pixels = 0.0, 0
    for image, mask in loader:
        logits = model(image)
        loss += F.cross_entropy(logits, mask, reduction="sum").item()
        pixels += mask.numel()
        guess = logits.argmax(1)
        for wanted in range(3):
            for got in range(3):
                confusion[wanted, got] += ((mask == wanted) & (guess == got)).sum()
    model.train()
    hit = confusion.diag().double()
    iou = hit / (confusion.sum(0) + confusion.sum(1) - hit).clamp(min=1)
    return loss / pixels, iou.mean().item()


def main():
    torch.manual_seed(11)
    train_set = Tiles(148, seed=1, augment=True)
    held_out = Tiles(40, seed=2, augment=False)
    train_loader = DataLoader(train_set, batch_size=args.micro_batch, shuffle=True)
    eval_loader = DataLoader(held_out, batch_size=4)

    model = UNet()
    class_weights = torch.tensor([0.4, 1.2, 1.4])
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}], lr=args.lr
    )
    micro_batches = len(train_loader)
    per_epoch = math.ceil(micro_batches / args.accumulate)
    total, warm = per_epoch * args.epochs, 6

    def factor(update):
        if update < warm:
            return (update + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (update - warm) / (total - warm)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    first_epoch, update = 0, 0
    if args.resume:
        saved = torch.load(args.resume, weights_only=False)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        torch.set_rng_state(saved["rng"])
        first_epoch, update = saved["epoch"], saved["update"]

    os.makedirs("runs", exist_ok=True)
    model.train()
    for epoch in range(first_epoch, args.epochs):
        running = 0.0
        for i, (image, mask) in enumerate(train_loader):
            window = i // args.accumulate * args.accumulate
            divisor = min(args.accumulate, micro_batches - window)
            logits = model(image)
            loss = F.cross_entropy(logits, mask, weight=class_weights) + 0.5 * dice_loss(logits, mask)
            (loss / divisor).backward()
            running += loss.item() / divisor
            if (i + 1) % args.accumulate == 0 or i + 1 == micro_batches:
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                update += 1
                if update % 4 == 0:
                    print(f"update {update} loss {running:.5f} norm {norm:.4f} lr {scheduler.get_last_lr()[0]:.6f}", flush=True)
                running = 0.0
        loss, iou = evaluate(model, eval_loader)
        print(f"epoch {epoch + 1} held-out loss {loss:.5f} iou {iou:.4f}", flush=True)
        if (epoch + 1) % 2 == 0:
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "rng": torch.get_rng_state(),
                    "epoch": epoch + 1,
                    "update": update,
                },
                f"runs/epoch{epoch + 1}.pt",
            )


if __name__ == "__main__":
    main()
