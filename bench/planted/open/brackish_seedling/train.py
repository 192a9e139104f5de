"""Seedling classifier: six species photographed on soil trays, folder of JPEGs -> small ResNet."""

import argparse
import math
import os
import random
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFilter
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECIES = ["chickweed", "charlock", "cleavers", "fathen", "mayweed", "shepherds_purse"]


# ----------------------------------------------------------------------------- data on disk


def draw_plant(rng, species):
    w, h = 720, 540
    soil = rng.normal(95, 22, (h // 6, w // 6, 1)) * np.array([1.0, 0.8, 0.62])
    img = Image.fromarray(soil.clip(0, 255).astype(np.uint8)).resize((w, h), Image.BICUBIC)
    d = ImageDraw.Draw(img)
    cx, cy = w * rng.uniform(0.35, 0.65), h * rng.uniform(0.35, 0.65)
    leaves = 3 + species
    length = rng.uniform(110, 190)
    width = length * (0.18 + 0.07 * (species % 3))
    tone = (int(rng.uniform(40, 90)), int(rng.uniform(130, 200)), int(rng.uniform(30, 80)))
    phase = rng.uniform(0, 2 * math.pi)
    for k in range(leaves):
        a = phase + 2 * math.pi * k / leaves + rng.normal(0, 0.08)
        tip = (cx + length * math.cos(a), cy + length * math.sin(a))
        mid = (cx + 0.55 * length * math.cos(a), cy + 0.55 * length * math.sin(a))
        nx, ny = -math.sin(a) * width / 2, math.cos(a) * width / 2
        d.polygon([(cx, cy), (mid[0] + nx, mid[1] + ny), tip, (mid[0] - nx, mid[1] - ny)], fill=tone)
    return img.filter(ImageFilter.GaussianBlur(1.2))


def make_folder(root, per_class, seed):
    for s, name in enumerate(SPECIES):
        (root / name).mkdir(parents=True, exist_ok=True)
        for i in range(per_class):
            path = root / name / f"{i:04d}.jpg"
            if not path.exists():
                draw_plant(np.random.default_rng([seed, s, i]), s).save(path, quality=92)


class SeedlingFolder(Dataset):
    def __init__(self, root, size, train):
        self.items = []
        for label, name in enumerate(SPECIES):
            for p in sorted((root / name).glob("*.jpg")):
                self.items.append((p, label))
        self.size = size
        self.train = train
        if os.environ.get("PLANTED_FIX") == "1":
            self.load = lru_cache(maxsize=None)(self.load)

    def __len__(self):
        return len(self.items)

    def load(self, path):
        img = Image.open(path).convert("RGB")
        return img.resize((self.size + 8, self.size + 8), Image.BICUBIC)

    def __getitem__(self, i):
        path, label = self.items[i]
        img = self.load(path)
        if self.train:
            x0, y0 = random.randint(0, 8), random.randint(0, 8)
            img = img.crop((x0, y0, x0 + self.size, y0 + self.size))
            if random.random() < 0.5:
                img = img.transpose(Image.FLIP_LEFT_RIGHT)
            img = img.rotate(90 * random.randint(0, 3))
        else:
            img = img.crop((4, 4, 4 + self.size, 4 + self.size))
        x = torch.from_numpy(np.array(img)).permute(2, 0, 1).float().div_(255)
        return (x - 0.45) / 0.25, label


# ----------------------------------------------------------------------------- model


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.c1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(cout)
        self.c2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(cout)
        self.skip = nn.Identity()
        if stride != 1 or cin != cout:
            self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)))
        return F.relu(self.b2(self.c2(y)) + self.skip(x))


class SmallResNet(nn.Module):
    def __init__(self, classes, width=16):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.Sequential(
            Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2), Block(4 * width, 4 * width, 1)
        )
        self.head = nn.Linear(4 * width, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


# ----------------------------------------------------------------------------- run


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hit = n = 0
    for x, y in loader:
        hit += (model(x).argmax(1) == y).sum().item()
        n += len(y)
    model.train()
    return hit / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="seedlings", type=Path)
    ap.add_argument("--size", default=64, type=int)
    ap.add_argument("--batch-size", default=16, type=int)
    ap.add_argument("--lr", default=0.02, type=float)
    ap.add_argument("--seed", default=11, type=int)
    ap.add_argument("--steps", default=int(os.environ.get("PLANTED_STEPS", 240)), type=int)
    args = ap.parse_args()

    random.seed(args.seed)
    torch.manual_seed(args.seed)
    make_folder(args.data / "train", 20, args.seed)
    make_folder(args.data / "val", 4, args.seed + 1)

    train_set = SeedlingFolder(args.data / "train", args.size, True)
    val_set = SeedlingFolder(args.data / "val", args.size, False)
    loader = DataLoader(train_set, args.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, 24)

    model = SmallResNet(len(SPECIES))
    opt = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4, nesterov=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.steps)

    step, epoch, last = 0, 0, float("nan")
    t0 = time.perf_counter()
    while step < args.steps:
        for x, y in loader:
            loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            last = loss.item()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {last:.4f}")
            if step >= args.steps:
                break
        epoch += 1
    wall = time.perf_counter() - t0
    print(f"val accuracy {accuracy(model, val_loader):.3f}")
    print(f"{step} steps in {wall:.1f} s, loss {last:.6f}")


if __name__ == "__main__":
    main()
