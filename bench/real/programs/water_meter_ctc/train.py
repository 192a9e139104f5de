"""Reads the serial number off the plate of a water meter: CNN, LSTM and CTC."""
import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchmetrics.text import CharErrorRate
from tqdm import tqdm

from data import ALPHABET, Plates, collate
from decoder import beam_search
from model import CRNN


def train_epoch(model, loader, ctc, optimizer, scheduler, device):
    model.train()
    total = 0.0
    bar = tqdm(loader, mininterval=2)
    for images, targets, lengths, _ in bar:
        images, targets = images.to(device), targets.to(device)
        log_probs = model(images)
        inputs = torch.full((images.size(0),), log_probs.size(1), dtype=torch.long)
        loss = ctc(log_probs.transpose(0, 1), targets, inputs, lengths)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        total += loss.item()
        bar.set_postfix(loss=f"{loss.item():.3f}")
    return total / len(loader)


@torch.no_grad()
def validate(model, loader, ctc, device, beam_size):
    model.eval()
    cer = CharErrorRate()
    total, exact, count = 0.0, 0, 0
    for images, targets, lengths, texts in loader:
        log_probs = model(images.to(device))
        inputs = torch.full((images.size(0),), log_probs.size(1), dtype=torch.long)
        total += ctc(log_probs.transpose(0, 1), targets.to(device), inputs, lengths).item()
        read = [beam_search(one, beam_size)[0] for one in log_probs.cpu().numpy()]
        cer.update(read, texts)
        exact += sum(a == b for a, b in zip(read, texts))
        count += len(texts)
    return total / len(loader), cer.compute().item(), exact / count


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="plates")
    p.add_argument("--epochs", type=int, default=13)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--beam", type=int, default=10)
    p.add_argument("--out", default="runs")
    args = p.parse_args()
    torch.manual_seed(0)
    os.makedirs(args.out, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_set, val_set = Plates(args.data, "train"), Plates(args.data, "val")
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True, drop_last=True, collate_fn=collate)
    val_loader = DataLoader(val_set, args.batch_size, collate_fn=collate)
    model = CRNN(len(ALPHABET) + 1).to(device)
    ctc = nn.CTCLoss(zero_infinity=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.epochs * len(train_loader))

    best = 1e9
    for epoch in range(args.epochs):
        start = time.time()
        loss = train_epoch(model, train_loader, ctc, optimizer, scheduler, device)
        val_loss, cer, exact = validate(model, val_loader, ctc, device, args.beam)
        print(f"epoch {epoch + 1}: loss {loss:.5f} val {val_loss:.5f} cer {cer:.4f} exact {exact:.4f} ({time.time() - start:.0f} s)", flush=True)
        if cer < best:
            best = cer
            torch.save(model.state_dict(), os.path.join(args.out, "best.pt"))


if __name__ == "__main__":
    main()
