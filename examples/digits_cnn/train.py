"""Train a small CNN on handwritten digits."""

import argparse
import math
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Dataset

OVERSAMPLE = 3  # geometry is done on a finer grid, to keep thin strokes


def upscale(image, size):
    """Bilinear resize of a square image."""
    old = image.shape[0]
    position = (np.arange(size) + 0.5) * old / size - 0.5
    low = np.clip(np.floor(position).astype(int), 0, old - 1)
    high = np.clip(low + 1, 0, old - 1)
    weight = np.clip(position - low, 0.0, 1.0)
    rows = image[low] * (1 - weight)[:, None] + image[high] * weight[:, None]
    return rows[:, low] * (1 - weight) + rows[:, high] * weight


def deskew(image):
    """Shear the image so that its principal axis stands upright, and centre it."""
    size = image.shape[0]
    ys, xs = np.mgrid[:size, :size].astype(np.float64)
    mass = image.sum() + 1e-8
    cy, cx = (image * ys).sum() / mass, (image * xs).sum() / mass
    var_y = (image * (ys - cy) ** 2).sum() / mass + 1e-8
    skew = (image * (ys - cy) * (xs - cx)).sum() / mass / var_y
    middle = (size - 1) / 2
    source_y = ys + cy - middle
    source_x = xs + cx - middle + skew * (ys - middle)
    y0, x0 = np.floor(source_y).astype(int), np.floor(source_x).astype(int)
    wy, wx = source_y - y0, source_x - x0
    padded = np.pad(image, 1)
    y0, x0 = np.clip(y0 + 1, 0, size), np.clip(x0 + 1, 0, size)
    top = padded[y0, x0] * (1 - wx) + padded[y0, x0 + 1] * wx
    bottom = padded[y0 + 1, x0] * (1 - wx) + padded[y0 + 1, x0 + 1] * wx
    return top * (1 - wy) + bottom * wy


def smooth(image, sigma):
    """Separable Gaussian blur."""
    radius = max(1, math.ceil(3 * sigma))
    kernel = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    kernel /= kernel.sum()
    padded = np.pad(image, radius, mode="edge")
    size = image.shape[0]
    rows = sum(k * padded[i : i + size] for i, k in enumerate(kernel))
    return sum(k * rows[:, i : i + size] for i, k in enumerate(kernel))


def normalize_contrast(image, sigma=3.0):
    """Subtract the local mean and divide by the local deviation."""
    centred = image - smooth(image, sigma)
    deviation = np.sqrt(smooth(centred**2, sigma))
    return centred / np.maximum(deviation, deviation.mean() + 1e-6)


class DigitDataset(Dataset):
    """Digits as normalised float images of `size` × `size`."""

    def __init__(self, images, labels, size=28):
        self.images = images
        self.labels = labels
        self.size = size

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = upscale(self.images[index] / 16.0, OVERSAMPLE * self.size)
        image = deskew(image)
        image = smooth(image, 0.8 * OVERSAMPLE)
        image = image.reshape(self.size, OVERSAMPLE, self.size, OVERSAMPLE).mean(axis=(1, 3))
        image = normalize_contrast(image)
        return torch.from_numpy(image).float().unsqueeze(0), int(self.labels[index])


class DigitNet(nn.Module):
    def __init__(self, width=16, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(width)
        self.bn2 = nn.BatchNorm2d(2 * width)
        self.dropout = nn.Dropout(0.25)
        self.fc = nn.Linear(2 * width * 7 * 7, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(self.dropout(x.flatten(1)))


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    loss, correct, count = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss += F.cross_entropy(logits, labels, reduction="sum").item()
        correct += (logits.argmax(1) == labels).sum().item()
        count += len(labels)
    return loss / count, correct / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--size", type=int, default=28)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--log-every", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    args.out.mkdir(parents=True, exist_ok=True)

    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(
        digits.images, digits.target, test_size=0.2, random_state=args.seed, stratify=digits.target
    )
    train_set = DigitDataset(train_x, train_y, args.size)
    test_set = DigitDataset(test_x, test_y, args.size)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=128)

    model = DigitNet().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    step, best = 0, 0.0
    for epoch in range(args.epochs):
        model.train()
        for images, labels in train_loader:
            images, labels = images.to(device), labels.to(device)
            loss = F.cross_entropy(model(images), labels, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % args.log_every == 0:
                print(f"epoch {epoch + 1} step {step} loss {loss.item():.4f}")
        scheduler.step()

        test_loss, accuracy = evaluate(model, test_loader, device)
        print(f"epoch {epoch + 1} test loss {test_loss:.4f} accuracy {accuracy:.4f}")
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1, "accuracy": accuracy}
        torch.save(state, args.out / "last.pt")
        if accuracy > best:
            best = accuracy
            torch.save(state, args.out / "best.pt")
    print(f"best accuracy {best:.4f}")


if __name__ == "__main__":
    main()
