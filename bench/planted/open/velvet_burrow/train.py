"""Leaf disease classification from photographs (5 classes)."""

import csv
import functools
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image, ImageDraw
from torch.utils.data import DataLoader, Dataset

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "photos")
CLASSES = ["healthy", "rust", "scab", "mildew", "blight"]
SPOTS = {"healthy": 0, "rust": 14, "scab": 8, "mildew": 20, "blight": 5}
TINT = {"healthy": (0, 0, 0), "rust": (180, 90, 20), "scab": (60, 40, 20), "mildew": (225, 225, 215), "blight": (90, 70, 10)}

N_PHOTOS = 320
PHOTO_SIZE = (384, 288)
INPUT_SIZE = 48
BATCH_SIZE = 16
LR = 2e-3
STEPS = int(os.environ.get("PLANTED_STEPS", 550))
SEED = 7


def make_photos():
    os.makedirs(DATA, exist_ok=True)
    rng = random.Random(SEED)
    nrng = np.random.default_rng(SEED)
    w, h = PHOTO_SIZE
    rows = []
    for i in range(N_PHOTOS):
        label = rng.choice(CLASSES)
        base = np.array([60, 120, 50]) + nrng.normal(0, 12, 3)
        noise = nrng.normal(0, 18, (h, w, 1)) + base
        img = Image.fromarray(noise.clip(0, 255).astype(np.uint8))
        draw = ImageDraw.Draw(img)
        for _ in range(SPOTS[label] + rng.randint(0, 3)):
            x, y, r = rng.randint(0, w), rng.randint(0, h), rng.randint(6, 26)
            color = tuple(int(c + rng.gauss(0, 15)) for c in TINT[label])
            draw.ellipse((x - r, y - r, x + r, y + r), fill=color)
        name = f"leaf_{i:04d}.jpg"
        img.save(os.path.join(DATA, name), quality=92)
        rows.append((name, label))
    with open(os.path.join(DATA, "labels.csv"), "w", newline="") as f:
        csv.writer(f).writerows(rows)


class LeafDataset(Dataset):
    def __init__(self, root):
        self.root = root
        with open(os.path.join(root, "labels.csv")) as f:
            self.rows = [(name, CLASSES.index(label)) for name, label in csv.reader(f)]
        if os.environ.get("PLANTED_FIX") == "1":
            self.read = functools.cache(self.read)

    def __len__(self):
        return len(self.rows)

    def read(self, name):
        img = Image.open(os.path.join(self.root, name)).convert("RGB")
        img = img.resize((INPUT_SIZE, INPUT_SIZE), Image.BICUBIC)
        return img

    def __getitem__(self, i):
        name, label = self.rows[i]
        img = self.read(name)
        x = torch.from_numpy(np.array(img)).permute(2, 0, 1).float() / 255.0
        x = (x - 0.45) / 0.22
        if random.random() < 0.5:
            x = x.flip(2)
        if random.random() < 0.5:
            x = x.flip(1)
        return x, label


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride=2, bias=False)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.skip(x))


class LeafNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Block(16, 24), Block(24, 32), Block(32, 48))
        self.head = nn.Linear(48, n_classes)

    def forward(self, x):
        x = self.blocks(F.relu(self.stem(x)))
        return self.head(x.mean(dim=(2, 3)))


if not os.path.exists(os.path.join(DATA, "labels.csv")):
    make_photos()

torch.manual_seed(SEED)
random.seed(SEED)
dataset = LeafDataset(DATA)
loader = DataLoader(dataset, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
model = LeafNet(len(CLASSES))
optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

step, epoch = 0, 0
loss = None
start = time.perf_counter()
while step < STEPS:
    seen, right = 0, 0
    for images, labels in loader:
        logits = model(images)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (logits.argmax(1) == labels).sum().item()
        seen += len(labels)
        step += 1
        if step >= STEPS:
            break
    epoch += 1
    print(f"epoch {epoch}: loss {loss.item():.4f} acc {right / seen:.3f}")
print(f"{step} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")
