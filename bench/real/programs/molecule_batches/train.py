import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from data import ELEMENTS, MoleculeDataset, collate

EPOCHS, BATCH, WIDTH = 14, 64, 64


class BondConv(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.bond = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(3)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x, adjacency):
        out = self.own(x)
        for kind, linear in enumerate(self.bond):
            out = out + adjacency[:, kind] @ linear(x)
        return x + F.relu(self.norm(out))


class MoleculeNet(nn.Module):
    def __init__(self, width=WIDTH, layers=3):
        super().__init__()
        self.embed = nn.Linear(len(ELEMENTS) + 1, width)
        self.layers = nn.ModuleList([BondConv(width) for _ in range(layers)])
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, features, adjacency, mask):
        x = self.embed(features)
        for layer in self.layers:
            x = layer(x, adjacency)
        x = (x * mask.unsqueeze(-1)).sum(1)
        return self.head(x / 10).squeeze(-1)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    error, count = 0.0, 0
    for features, adjacency, mask, y in loader:
        error += (model(features, adjacency, mask) - y).abs().sum().item()
        count += len(y)
    model.train()
    return error / count


def main():
    torch.manual_seed(5)
    train = DataLoader(MoleculeDataset(4096, 1), BATCH, shuffle=True, collate_fn=collate)
    valid = DataLoader(MoleculeDataset(512, 2), 128, collate_fn=collate)
    model = MoleculeNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    os.makedirs("runs", exist_ok=True)
    best = float("inf")
    for epoch in range(EPOCHS):
        total = 0.0
        for features, adjacency, mask, y in train:
            loss = F.smooth_l1_loss(model(features, adjacency, mask), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        scheduler.step()
        mae = evaluate(model, valid)
        print(f"epoch {epoch} loss {total / len(train):.4f} valid mae {mae:.4f}", flush=True)
        if mae < best:
            best = mae
            torch.save(model.state_dict(), "runs/best.pt")


if __name__ == "__main__":
    main()
