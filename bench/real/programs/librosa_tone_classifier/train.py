"""Tells synthetic instruments apart from their log-mel pictures."""

import librosa
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

RATE = 16000
SECONDS = 1.5
CLASSES = ["organ", "pluck", "bell", "reed", "noise"]
EPOCHS = 8


def synthesize(kind, rng):
    n = int(RATE * SECONDS)
    t = np.arange(n) / RATE
    f0 = rng.uniform(110, 660)
    if kind == "organ":
        y = sum(np.sin(2 * np.pi * f0 * k * t) / k for k in (1, 2, 3, 4, 6))
    elif kind == "pluck":
        y = sum(np.sin(2 * np.pi * f0 * k * t) * np.exp(-3 * k * t) / k for k in range(1, 8))
    elif kind == "bell":
        y = sum(np.sin(2 * np.pi * f0 * r * t) * np.exp(-2 * t) for r in (1, 2.76, 5.4, 8.93))
    elif kind == "reed":
        y = sum(np.sin(2 * np.pi * f0 * k * t) / k for k in range(1, 12, 2)) * (1 + 0.2 * np.sin(2 * np.pi * 6 * t))
    else:
        y = rng.normal(0, 1, n) * np.exp(-t * rng.uniform(0.5, 4))
    y = y / np.abs(y).max() + rng.normal(0, 0.02, n)
    return y.astype(np.float32)


class ToneDataset(Dataset):
    def __init__(self, count, seed=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(CLASSES), count)
        self.waves = [synthesize(CLASSES[k], rng) for k in self.labels]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        y = self.waves[index]
        mel = librosa.feature.melspectrogram(y=y, sr=RATE, n_fft=1024, hop_length=256, n_mels=64)
        logmel = librosa.power_to_db(mel, ref=np.max)
        features = (logmel - logmel.mean()) / (logmel.std() + 1e-6)
        return torch.from_numpy(features)[None], int(self.labels[index])


class ToneNet(nn.Module):
    def __init__(self):
        super().__init__()
        channels = [1, 8, 16, 32]
        layers = []
        for a, b in zip(channels, channels[1:]):
            layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(channels[-1], len(CLASSES))

    def forward(self, x):
        return self.classifier(self.features(x))


def evaluate(model, loader, device):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for x, y in loader:
            pred = model(x.to(device)).argmax(1).cpu()
            correct += (pred == y).sum().item()
            total += len(y)
    return correct / total


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = ToneDataset(840)
    train_set, valid_set = random_split(dataset, [720, 120])
    train_loader = DataLoader(train_set, batch_size=20, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=20)

    model = ToneNet().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, EPOCHS + 1):
        model.train()
        loss_sum = hits = seen = 0
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
            seen += len(y)
        acc = evaluate(model, valid_loader, device)
        print(f"epoch {epoch}: loss {loss_sum / seen:.4f} train {hits / seen:.3f} valid {acc:.3f}")
        torch.save({"model": model.state_dict(), "epoch": epoch}, "tones.pt")


if __name__ == "__main__":
    main()
