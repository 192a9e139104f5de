"""Train a small CNN on the leaf-disease photos.

Expects photos/<class>/<nnnn>.png; a synthetic set is drawn there when the folder is missing.
"""

import argparse
import os
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image, ImageDraw
from torch.utils.data import DataLoader, Dataset

HERE = Path(__file__).resolve().parent
CLASSES = ["healthy", "rust", "mildew", "blight"]
MEAN = torch.tensor([0.40, 0.45, 0.35]).view(3, 1, 1)
STD = torch.tensor([0.20, 0.20, 0.20]).view(3, 1, 1)


def draw_photos(root, per_class, size=(400, 300), seed=0):
    rng = random.Random(seed)
    spot = {"rust": (170, 90, 30), "mildew": (220, 220, 215), "blight": (60, 45, 30)}
    for name in CLASSES:
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(per_class):
            background = tuple(rng.randint(60, 190) for _ in range(3))
            img = Image.new("RGB", size, background)
            draw = ImageDraw.Draw(img)
            x, y = rng.randint(20, 120), rng.randint(20, 80)
            leaf = (rng.randint(20, 60), rng.randint(110, 170), rng.randint(20, 60))
            draw.ellipse((x, y, x + rng.randint(180, 260), y + rng.randint(120, 190)), fill=leaf)
            if name != "healthy":
                for _ in range(rng.randint(5, 25)):
                    cx, cy, r = x + rng.randint(30, 170), y + rng.randint(20, 110), rng.randint(4, 12)
                    draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=spot[name])
            grain = np.random.default_rng(rng.randrange(2**31)).integers(-12, 13, (size[1], size[0], 3))
            pixels = np.clip(np.asarray(img, dtype=np.int16) + grain, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{i:04d}.png", compress_level=3)


class LeafPhotos(Dataset):
    def __init__(self, root, image_size, train=True):
        self.items = []
        for label, name in enumerate(CLASSES):
            files = sorted((root / name).glob("*.png"))
            cut = int(0.85 * len(files))
            self.items += [(f, label) for f in (files[:cut] if train else files[cut:])]
        self.image_size = image_size
        self.train = train
        self.images = None
        if os.environ.get("PLANTED_FIX") == "1":
            self.images = [self.load(f) for f, _ in self.items]

    def load(self, path):
        with Image.open(path) as img:
            img = img.convert("RGB").resize((self.image_size, self.image_size), Image.BILINEAR)
        return torch.from_numpy(np.array(img)).permute(2, 0, 1)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, idx):
        path, label = self.items[idx]
        x = self.load(path) if self.images is None else self.images[idx]
        x = (x.float() / 255 - MEAN) / STD
        if self.train:
            if torch.rand(()) < 0.5:
                x = x.flip(-1)
            pad = F.pad(x, (4, 4, 4, 4))
            top, left = torch.randint(0, 9, (2,)).tolist()
            x = pad[:, top : top + self.image_size, left : left + self.image_size]
        return x, label


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True), nn.MaxPool2d(2))


class LeafNet(nn.Module):
    def __init__(self, width, num_classes):
        super().__init__()
        self.features = nn.Sequential(conv_block(3, width), conv_block(width, 2 * width), conv_block(2 * width, 4 * width))
        self.head = nn.Linear(4 * width, num_classes)

    def forward(self, x):
        return self.head(self.features(x).mean(dim=(2, 3)))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = total = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()
        total += len(y)
    model.train()
    return hits / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=HERE / "photos")
    parser.add_argument("--image-size", type=int, default=48)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--width", type=int, default=12)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    steps = int(os.environ.get("PLANTED_STEPS", args.steps))

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    if not args.data.exists():
        draw_photos(args.data, per_class=60, seed=args.seed)

    train_set = LeafPhotos(args.data, args.image_size)
    valid_set = LeafPhotos(args.data, args.image_size, train=False)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid_set, batch_size=32)

    model = LeafNet(args.width, len(CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=max(steps, 10))

    step, epoch = 0, 0
    start = time.perf_counter()
    while step < steps:
        running = 0.0
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            running += loss.item()
            step += 1
            if step == steps:
                break
        epoch += 1
        if epoch % 5 == 0:
            print(f"epoch {epoch:3d} loss {running / len(train_loader):.4f}")
    elapsed = time.perf_counter() - start

    print(f"valid accuracy {accuracy(model, valid_loader):.3f}")
    print(f"{step} steps in {elapsed:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
