"""Topic classifier: python train.py [--resume out/last.pt]"""

import argparse
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from data import TOPICS, VOCABULARY, Texts, class_weights, collate, make_lines
from ema import Ema
from model import TopicModel

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=12)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--clip", type=float, default=1.0)
parser.add_argument("--resume")


def evaluate(model, loader, criterion):
    model.eval()
    losses, right, seen = [], 0, 0
    for tokens, labels in loader:
        logits = model(tokens)
        losses.append(criterion(logits, labels).item())
        right += (logits.argmax(1) == labels).sum().item()
        seen += len(labels)
    return sum(losses) / len(losses), right / seen


def main():
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    os.makedirs("out", exist_ok=True)

    lines = make_lines(720, seed=21)
    held_out = make_lines(160, seed=22)
    train_loader = DataLoader(Texts(lines), batch_size=args.batch_size, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(Texts(held_out), batch_size=4, collate_fn=collate)

    model = TopicModel(len(VOCABULARY), TOPICS)
    ema = Ema(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=1e-4, foreach=False)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=20)
    decay = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[80, 140], gamma=0.3)
    scheduler = torch.optim.lr_scheduler.ChainedScheduler([warm, decay])
    criterion = nn.CrossEntropyLoss(weight=class_weights(lines))
    first_epoch = 0
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        ema.model.load_state_dict(state["ema"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["rng"])
        first_epoch = state["epoch"]

    for epoch in range(first_epoch, args.epochs):
        model.train()
        window = []
        for i, (tokens, labels) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = criterion(model(tokens), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            scheduler.step()
            ema.update(model)
            window.append(loss.item())
            if (i + 1) % 20 == 0:
                print(f"epoch {epoch + 1} batch {i + 1} loss {sum(window) / len(window):.5f}", flush=True)
                window = []
        val_loss, accuracy = evaluate(ema.model, val_loader, criterion)
        print(f"epoch {epoch + 1} val_loss {val_loss:.5f} accuracy {accuracy:.4f}", flush=True)
        state = {
            "model": model.state_dict(),
            "ema": ema.model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": torch.get_rng_state(),
            "epoch": epoch + 1,
        }
        torch.save(state, f"out/epoch_{epoch + 1}.pt")


if __name__ == "__main__":
    main()
