"""Whale call detector, mixed precision (bf16 on CPU), GradScaler kept for the GPU box."""

import copy
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Detector(nn.Module):
    def __init__(self, mels=48, dim=256, vocab=3):
        super().__init__()
        self.proj = nn.Linear(mels, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.wide = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))
        self.out = nn.Linear(dim, vocab)

    def forward(self, mel):
        h, _ = self.gru(F.relu(self.proj(mel)))
        h = h[:, -1]
        return self.out(h + self.wide(h))


class BestModel:
    """Remembers and stores the best state so far."""

    def __init__(self, path, patience):
        self.path, self.patience = path, patience
        self.best, self.at, self.state = float("inf"), 0, None

    def update(self, value, step, model, optimizer, scaler):
        if value >= self.best or step - self.at < self.patience:
            return
        self.best, self.at = value, step
        self.state = {
            "step": step,
            "model": copy.deepcopy(model.state_dict()),
            "optimizer": copy.deepcopy(optimizer.state_dict()),
            "scaler": scaler.state_dict(),
        }
        torch.save(self.state, self.path)


def call_batch(g, n=24, frames=12, mels=48):
    y = torch.randint(0, 3, (n,), generator=g)
    x = torch.randn(n, frames, mels, generator=g)
    x[torch.arange(n), :, y * 7] += 1.0
    return x, y


def main():
    torch.set_num_threads(1)
    torch.manual_seed(12)
    g = torch.Generator().manual_seed(13)
    os.makedirs("checkpoints", exist_ok=True)
    steps = int(os.environ.get("PLANTED_STEPS", 750))
    model = Detector()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-5)
    scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())
    best = BestModel("checkpoints/best.pt", patience=100 if os.environ.get("PLANTED_FIX") == "1" else 1)
    x_all, y_all = call_batch(g, n=24 * 60)
    smooth = None
    t0 = time.perf_counter()
    for step in range(1, steps + 1):
        k = (step - 1) % 60 * 24
        x, y = x_all[k : k + 24], y_all[k : k + 24]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        smooth = loss.item() if smooth is None else 0.98 * smooth + 0.02 * loss.item()
        best.update(smooth, step, model, optimizer, scaler)
        if step % 50 == 0:
            print(f"{step} train {smooth:.4f} best {best.best:.4f}")
    print(f"{steps} steps in {time.perf_counter() - t0:.2f}s, loss {smooth:.4f}")


if __name__ == "__main__":
    main()
