"""Learns to name birds by their calls."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from sounds import KINDS, Calls
from torch.utils.data import DataLoader


class Ear(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.layers = nn.Sequential(
            self.layer(1, width), self.layer(width, 2 * width), self.layer(2 * width, 4 * width)
        )
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(4 * width, KINDS)

    @staticmethod
    def layer(inside, outside):
        return nn.Sequential(nn.Conv2d(inside, outside, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU())

    def forward(self, picture):
        return self.head(self.dropout(self.layers(picture).mean((2, 3))))


def mix(pictures, kinds, alpha):
    """Mixup, for every second batch or so."""
    hot = F.one_hot(kinds, KINDS).float()
    if torch.rand(()) < 0.5:
        return pictures, hot
    share = torch.distributions.Beta(alpha, alpha).sample()
    other = torch.randperm(len(pictures))
    return share * pictures + (1 - share) * pictures[other], share * hot + (1 - share) * hot[other]


def evaluate(model, loader, amp):
    model.eval()
    right, loss, count = 0, 0.0, 0
    with torch.no_grad():
        for pictures, kinds in loader:
            with torch.autocast("cpu", enabled=amp):
                logits = model(pictures)
            loss += F.cross_entropy(logits.float(), kinds, reduction="sum").item()
            right += (logits.argmax(1) == kinds).sum().item()
            count += len(kinds)
    return loss / count, right / count


def main(args):
    torch.manual_seed(args.seed)
    train_set, test_set = Calls(args.samples, 1, True), Calls(300, 2, False)
    order = torch.Generator().manual_seed(args.seed + 1)
    train_loader = DataLoader(train_set, args.batch, shuffle=True, num_workers=args.workers, generator=order)
    test_loader = DataLoader(test_set, 60, num_workers=args.workers, generator=torch.Generator())
    model = Ear()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=args.weight_decay, foreach=False)
    updates = -(-len(train_loader) // args.accumulate)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, epochs=args.epochs, steps_per_epoch=updates)
    scaler = torch.amp.GradScaler("cpu", enabled=args.amp)
    first, step, best = 0, 0, 0.0
    if args.resume:
        saved = torch.load(args.resume, weights_only=False)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        order.set_state(saved["order"])
        torch.set_rng_state(saved["rng"])
        first, step, best = saved["epoch"], saved["step"], saved["best"]

    os.makedirs("checkpoints", exist_ok=True)
    for epoch in range(first, args.epochs):
        model.train()
        optimizer.zero_grad()
        epoch_loss, last = 0.0, len(train_loader) - 1
        for number, (pictures, kinds) in enumerate(train_loader):
            pictures, hot = mix(pictures, kinds, args.mix)
            group = min(args.accumulate, last + 1 - number // args.accumulate * args.accumulate)
            with torch.autocast("cpu", enabled=args.amp):
                logits = model(pictures)
                loss = F.cross_entropy(logits, hot, label_smoothing=args.smoothing)
            scaler.scale(loss / group).backward()
            epoch_loss += loss.item()
            if (number + 1) % args.accumulate == 0 or number == last:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                scaler.step(optimizer)
                scaler.update()
                scheduler.step()
                optimizer.zero_grad()
                step += 1
                if step % args.log_every == 0:
                    print(f"step {step} loss {loss.item():.5f} lr {scheduler.get_last_lr()[0]:.6f}", flush=True)
        test_loss, accuracy = evaluate(model, test_loader, args.amp)
        best = max(best, accuracy)
        print(f"epoch {epoch} train {epoch_loss / len(train_loader):.5f} test {test_loss:.5f} accuracy {accuracy:.4f}", flush=True)
        torch.save(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "scaler": scaler.state_dict(),
                "order": order.get_state(),
                "rng": torch.get_rng_state(),
                "epoch": epoch + 1,
                "step": step,
                "best": best,
            },
            f"checkpoints/epoch_{epoch + 1}.pt",
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--samples", type=int, default=390)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.08)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--clip", type=float, default=2.0)
    parser.add_argument("--mix", type=float, default=0.3)
    parser.add_argument("--smoothing", type=float, default=0.05)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--log-every", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--resume")
    main(parser.parse_args())
