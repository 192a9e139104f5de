"""Classifies steel surface defects: a small ResNet, Kornia augmentation on batches, Accelerate loop."""
import argparse
import os

import kornia.augmentation as K
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class DefectDataset(Dataset):
    def __init__(self, root, split, size):
        table = pd.read_csv(os.path.join(root, "labels.csv"))
        self.table = table[table.split == split].reset_index(drop=True)
        self.root = root
        self.size = size

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        row = self.table.iloc[i]
        image = Image.open(os.path.join(self.root, row["file"])).convert("RGB")
        image = image.resize((self.size, self.size), Image.BILINEAR)
        x = torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255.0
        return x, int(row["label"])


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Identity() if stride == 1 and cin == cout else nn.Sequential(
            nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.skip(x))


class SmallResNet(nn.Module):
    def __init__(self, num_classes, width=16):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 5, 2, 2, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(
            Block(width, width, 1), Block(width, 2 * width, 2),
            Block(2 * width, 4 * width, 2), Block(4 * width, 8 * width, 2))
        self.head = nn.Linear(8 * width, num_classes)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


class Augment(nn.Module):
    def __init__(self):
        super().__init__()
        self.train_ops = K.AugmentationSequential(
            K.RandomHorizontalFlip(p=0.5),
            K.RandomVerticalFlip(p=0.5),
            K.RandomAffine(degrees=15.0, translate=(0.1, 0.1), scale=(0.9, 1.1), p=0.7),
            K.ColorJitter(0.2, 0.2, 0.1, 0.05, p=0.8),
            K.RandomGaussianBlur((3, 3), (0.1, 1.5), p=0.3),
            K.RandomErasing(scale=(0.02, 0.1), p=0.3),
            data_keys=["input"],
        )
        self.normalize = K.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])

    @torch.no_grad()
    def forward(self, x, train):
        if train:
            x = self.train_ops(x)
        return self.normalize(x)


def evaluate(accelerator, model, augment, loader):
    model.eval()
    correct = total = 0
    loss_sum = 0.0
    for images, labels in loader:
        with torch.no_grad():
            logits = model(augment(images, train=False))
        logits, labels = accelerator.gather_for_metrics((logits, labels))
        loss_sum += F.cross_entropy(logits, labels, reduction="sum").item()
        correct += (logits.argmax(1) == labels).sum().item()
        total += labels.numel()
    return loss_sum / total, correct / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="data")
    p.add_argument("--size", type=int, default=160)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--lr", type=float, default=2e-3)
    args = p.parse_args()

    set_seed(7)
    accelerator = Accelerator(cpu=True, log_with="tensorboard", project_dir="runs")
    accelerator.init_trackers("defects", config=vars(args))

    train_loader = DataLoader(DefectDataset(args.data, "train", args.size), batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(DefectDataset(args.data, "val", args.size), batch_size=args.batch_size)
    model = SmallResNet(6)
    augment = Augment()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.lr, total_steps=args.epochs * len(train_loader))
    model, optimizer, train_loader, val_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, val_loader, scheduler)

    step = 0
    for epoch in range(args.epochs):
        model.train()
        for images, labels in train_loader:
            images = augment(images, train=True)
            optimizer.zero_grad()
            logits = model(images)
            loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            accelerator.log({"train/loss": loss.item(), "lr": scheduler.get_last_lr()[0]}, step=step)
            step += 1
        val_loss, val_acc = evaluate(accelerator, model, augment, val_loader)
        accelerator.log({"val/loss": val_loss, "val/accuracy": val_acc}, step=step)
        accelerator.print(f"epoch {epoch + 1}: val loss {val_loss:.4f}, accuracy {val_acc:.3f}")
        accelerator.save_state("checkpoints/last")
    accelerator.end_training()


if __name__ == "__main__":
    if not os.path.exists("data"):
        import make_data

        make_data.main()
    main()
