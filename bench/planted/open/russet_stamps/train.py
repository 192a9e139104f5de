import os
import time

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader

from stamps.archive import build
from stamps.dataset import StampDataset


def make_model(channels: list[int], classes: int) -> nn.Module:
    layers: list[nn.Module] = []
    for a, b in zip([3, *channels], channels):
        layers += [nn.Conv2d(a, b, 3, stride=2, padding=1), nn.BatchNorm2d(b), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels[-1], classes))


def main() -> None:
    with open("config.yaml") as file:
        cfg = yaml.safe_load(file)
    torch.manual_seed(cfg["data"]["seed"])
    run = cfg["run"]
    dataset = StampDataset(build(**cfg["data"]))
    loader = DataLoader(dataset, run["batch_size"], shuffle=True, drop_last=True)
    model = make_model(cfg["model"]["channels"], cfg["data"]["classes"])
    optimizer = torch.optim.SGD(model.parameters(), run["lr"] * 10, momentum=0.9, fused=True)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    total = int(os.environ.get("PLANTED_STEPS", run["epochs"] * len(loader)))

    done, began = 0, time.perf_counter()
    while done < total:
        for images, labels in loader:
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done % run["log_every"] == 0:
                print(f"[{done}/{total}] {loss.item():.4f}", flush=True)
            if done == total:
                break
    print(f"{done} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
