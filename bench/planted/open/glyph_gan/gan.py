"""Generates runes. Deep convolutional GAN, one file."""

import os
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn, optim

torch.set_num_threads(1)

Z, SIDE, BATCH = 32, 32, 32
OUT = Path("samples")


class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(Z, 64 * 8 * 8)
        self.up = nn.Sequential(
            nn.BatchNorm2d(64),
            nn.ReLU(True),
            nn.ConvTranspose2d(64, 32, 4, 2, 1),
            nn.BatchNorm2d(32),
            nn.ReLU(True),
            nn.ConvTranspose2d(32, 1, 4, 2, 1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.up(self.fc(z).view(-1, 64, 8, 8))


class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 32, 4, 2, 1),
            nn.LeakyReLU(0.2, True),
            nn.Conv2d(32, 64, 4, 2, 1),
            nn.LeakyReLU(0.2, True),
            nn.Flatten(),
            nn.Linear(64 * 8 * 8, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def runes(n, rng):
    img = np.full((n, 1, SIDE, SIDE), -1.0, dtype=np.float32)
    for k in range(n):
        c = rng.integers(6, 26)
        img[k, 0, 4:28, c : c + 2] = 1.0
        r = rng.integers(5, 25)
        img[k, 0, r : r + 2, max(0, c - 6) : c + 6] = 1.0
    return torch.from_numpy(img)


def save_grid(images, path, columns=8, zoom=4):
    """Images in a grid, enlarged so that one sees something."""
    images = ((images.clamp(-1, 1) + 1) * 127.5).to(torch.uint8).numpy()
    rows = [np.concatenate(list(images[i : i + columns, 0]), axis=1) for i in range(0, len(images), columns)]
    sheet = Image.fromarray(np.concatenate(rows, axis=0), "L")
    sheet = sheet.resize((sheet.width * zoom, sheet.height * zoom), Image.LANCZOS)
    sheet.save(path, compress_level=6)


def main():
    torch.manual_seed(0)
    OUT.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    bank = runes(4000, rng)
    g, d = G(), D()
    g_opt = optim.Adam(g.parameters(), lr=2e-4, betas=(0.5, 0.999))
    d_opt = optim.Adam(d.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    fixed = torch.randn(32, Z)
    ones, zeros = torch.ones(BATCH), torch.zeros(BATCH)
    preview_every = 100 if os.environ.get("PLANTED_FIX") == "1" else 1
    iters = int(os.environ.get("PLANTED_STEPS", 260))

    t0 = time.time()
    for it in range(iters):
        real = bank[torch.randint(0, len(bank), (BATCH,))]
        fake = g(torch.randn(BATCH, Z))

        d_opt.zero_grad()
        d_loss = bce(d(real), ones) + bce(d(fake.detach()), zeros)
        d_loss.backward()
        d_opt.step()

        g_opt.zero_grad()
        g_loss = bce(d(fake), ones)
        g_loss.backward()
        g_opt.step()

        if it % preview_every == 0:
            g.eval()
            with torch.no_grad():
                save_grid(g(fixed), OUT / f"{it % 20:04d}.png")
            g.train()
        if it % 50 == 0:
            print(f"{it}: D {d_loss.item():.3f} G {g_loss.item():.3f}", flush=True)
    print(f"{iters} steps in {time.time() - t0:.2f}s, loss {d_loss.item():.4f}")


if __name__ == "__main__":
    main()
