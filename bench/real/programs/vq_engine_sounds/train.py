"""Learns a discrete code of engine sounds (a VQ-VAE on raw audio), for the anomaly detector that runs on the codes."""
import argparse
import csv
import os
import random
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from data import Recordings
from model import EngineVQVAE


def spectral_loss(a, b, sizes=(256, 1024)):
    loss = 0.0
    for n in sizes:
        window = torch.hann_window(n, device=a.device)
        spec = [torch.stft(x.squeeze(1), n, n // 4, window=window, return_complex=True).abs() for x in (a, b)]
        loss = loss + F.l1_loss(torch.log(spec[0] + 1e-3), torch.log(spec[1] + 1e-3))
    return loss / len(sizes)


def losses(model, sound, beta):
    out, commitment, perplexity = model(sound)
    wave, spectral = F.mse_loss(out, sound), spectral_loss(out, sound)
    return wave + 0.1 * spectral + beta * commitment, wave, spectral, perplexity


@torch.no_grad()
def validate(model, loader, beta, device):
    model.eval()
    sums = torch.zeros(4)
    for sound in loader:
        sums += torch.stack([x.cpu() for x in losses(model, sound.to(device), beta)])
    return (sums / len(loader)).tolist()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="recordings")
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=6e-4)
    p.add_argument("--beta", type=float, default=0.25)
    p.add_argument("--out", default="runs")
    args = p.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    os.makedirs(args.out, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_loader = DataLoader(Recordings(os.path.join(args.data, "train")), args.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(Recordings(os.path.join(args.data, "val"), train=False), args.batch_size)
    model = EngineVQVAE().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    log = csv.writer(open(os.path.join(args.out, "log.csv"), "w", newline=""))
    log.writerow(["epoch", "train", "val", "wave", "spectral", "perplexity"])

    for epoch in range(args.epochs):
        model.train()
        start, total = time.time(), 0.0
        for step, sound in enumerate(train_loader):
            sound = sound.to(device)
            loss, wave, spectral, perplexity = losses(model, sound, args.beta)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if step % 16 == 0:
                print(f"{epoch:3d} {step:4d} loss {loss.item():.6f} wave {wave.item():.6f} codes {perplexity.item():.1f}", flush=True)
        val = validate(model, val_loader, args.beta, device)
        log.writerow([epoch, total / len(train_loader), *val])
        print(f"epoch {epoch}: train {total / len(train_loader):.6f} val {val[0]:.6f} codes {val[3]:.1f} ({time.time() - start:.1f} s)", flush=True)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, os.path.join(args.out, "last.pt"))


if __name__ == "__main__":
    main()
