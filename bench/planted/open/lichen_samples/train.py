"""Multiple-instance learning: one label per bag of patches."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TOGETHER = os.environ.get("PLANTED_FIX") == "1"


class BagNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.patch = nn.Sequential(nn.Linear(75, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.weigh = nn.Linear(width, 1)
        self.decide = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 3))

    def forward(self, bags):
        h = self.patch(bags)
        attention = torch.softmax(self.weigh(h), dim=1)
        return self.decide((attention * h).sum(1))


def batch_loss(model, bags, labels):
    if TOGETHER:
        return nn.functional.cross_entropy(model(bags), labels)
    losses = []
    for bag, label in zip(bags, labels):
        out = model(bag.unsqueeze(0))
        losses.append(nn.functional.cross_entropy(out, label.unsqueeze(0)))
    return torch.stack(losses).mean()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(20)
    steps = int(os.environ.get("PLANTED_STEPS", 350))
    label = torch.randint(0, 3, (960,))
    bags = torch.randn(960, 9, 75) + 0.4 * torch.randn(3, 75)[label][:, None]
    loader = DataLoader(TensorDataset(bags, label), batch_size=48, shuffle=True)
    model = BagNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    n, start = 0, time.time()
    while n < steps:
        for some, labels in loader:
            optimizer.zero_grad()
            loss = batch_loss(model, some, labels)
            loss.backward()
            optimizer.step()
            n += 1
            if n >= steps:
                break
    print(f"{n} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
