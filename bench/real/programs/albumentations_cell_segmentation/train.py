"""Binary segmentation of drawn cells with a small U-Net and an albumentations pipeline."""

import albumentations as A
import cv2
import numpy as np
import torch
from albumentations.pytorch import ToTensorV2
from torch import nn
from torch.utils.data import DataLoader, Dataset

N_TRAIN, N_VALID = 320, 64
EPOCHS = 4


def draw_picture(rng, size=256):
    image = np.full((size, size, 3), rng.integers(150, 230), dtype=np.uint8)
    mask = np.zeros((size, size), dtype=np.uint8)
    for _ in range(rng.integers(5, 20)):
        centre = tuple(int(v) for v in rng.integers(0, size, 2))
        axes = tuple(int(v) for v in rng.integers(6, 28, 2))
        angle = float(rng.uniform(0, 180))
        colour = tuple(int(c) for c in rng.integers(40, 140, 3))
        cv2.ellipse(image, centre, axes, angle, 0, 360, colour, -1)
        cv2.ellipse(mask, centre, axes, angle, 0, 360, 1, -1)
    noise = rng.normal(0, 12, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8), mask


class CellDataset(Dataset):
    def __init__(self, count, seed, transform):
        rng = np.random.default_rng(seed)
        self.items = [draw_picture(rng) for _ in range(count)]
        self.transform = transform

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        image, mask = self.items[index]
        out = self.transform(image=image, mask=mask)
        return out["image"], out["mask"].float()[None]


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class TinyUNet(nn.Module):
    def __init__(self, w=8):
        super().__init__()
        self.enc1, self.enc2, self.mid = block(3, w), block(w, 2 * w), block(2 * w, 4 * w)
        self.dec2, self.dec1 = block(6 * w, 2 * w), block(3 * w, w)
        self.pool, self.up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(self.pool(a))
        c = self.mid(self.pool(b))
        b = self.dec2(torch.cat([self.up(c), b], 1))
        a = self.dec1(torch.cat([self.up(b), a], 1))
        return self.out(a)


def dice(logits, target, eps=1.0):
    pred = (logits > 0).float()
    return (2 * (pred * target).sum() + eps) / (pred.sum() + target.sum() + eps)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_tf = A.Compose(
        [
            A.RandomCrop(128, 128),
            A.HorizontalFlip(p=0.5),
            A.VerticalFlip(p=0.5),
            A.RandomRotate90(p=0.5),
            A.ElasticTransform(alpha=40, sigma=6, p=0.5),
            A.RandomBrightnessContrast(p=0.5),
            A.HueSaturationValue(p=0.3),
            A.GaussNoise(p=0.3),
            A.CLAHE(p=0.3),
            A.Normalize(),
            ToTensorV2(),
        ],
        seed=0,
    )
    valid_tf = A.Compose([A.CenterCrop(128, 128), A.Normalize(), ToTensorV2()])
    train_loader = DataLoader(CellDataset(N_TRAIN, 1, train_tf), batch_size=16, shuffle=True)
    valid_loader = DataLoader(CellDataset(N_VALID, 2, valid_tf), batch_size=16)

    model = TinyUNet().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(EPOCHS):
        model.train()
        running_loss, running_dice = 0.0, 0.0
        for images, masks in train_loader:
            images, masks = images.to(device), masks.to(device)
            logits = model(images)
            loss = criterion(logits, masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            running_dice += dice(logits.detach(), masks).item()
        model.eval()
        valid = []
        with torch.no_grad():
            for images, masks in valid_loader:
                valid.append(dice(model(images.to(device)), masks.to(device)).item())
        n = len(train_loader)
        print(f"epoch {epoch} loss {running_loss / n:.4f} dice {running_dice / n:.3f} valid {np.mean(valid):.3f}")
    torch.save(model.state_dict(), "unet.pt")


if __name__ == "__main__":
    main()
