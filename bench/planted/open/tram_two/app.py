"""Passenger counts per tram stop. Settings in settings.json."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

HERE = Path(__file__).parent


def read_settings():
    raw = json.loads((HERE / "settings.json").read_text())
    fix = os.environ.get("PLANTED_FIX", "0")
    if fix == "1":
        raw["audit_every"] = 100
    if fix == "2":
        raw["snapshot_every"] = 100
    raw["steps"] = int(os.environ.get("PLANTED_STEPS", raw["steps"]))
    return SimpleNamespace(**raw)


class Line(nn.Module):
    def __init__(self, stops, width):
        super().__init__()
        self.gru = nn.GRU(8, width, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 3 * width), nn.ReLU(), nn.Linear(3 * width, stops))

    def forward(self, x):
        h, _ = self.gru(x)
        return self.mlp(h[:, -1])


class Counts:
    def __init__(self, stops, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.mix = torch.randn(8, stops, generator=torch.Generator().manual_seed(0)) / 3

    def take(self, n, hours=12):
        x = torch.randn(n, hours, 8, generator=self.g)
        return x, (x.mean(1) @ self.mix).relu()


class App:
    def __init__(self, s):
        torch.manual_seed(1)
        self.s = s
        self.counts = Counts(s.stops, 2)
        self.audit_set = Counts(s.stops, 3).take(1536)
        self.model = Line(s.stops, s.width)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=s.lr, fused=True)
        self.ema, self.audited = None, None
        Path("snapshots").mkdir(exist_ok=True)

    def learn(self):
        x, y = self.counts.take(self.s.batch)
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        v = loss.item()
        self.ema = v if self.ema is None else 0.9 * self.ema + 0.1 * v

    @torch.no_grad()
    def audit(self):
        self.model.eval()
        x, y = self.audit_set
        parts = [(self.model(a) - b).abs().mean() for a, b in zip(x.split(64), y.split(64))]
        self.audited = torch.stack(parts).mean().item()
        self.model.train()

    def snapshot(self, step):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": step}, f"snapshots/{step % 8}.pt")

    def run(self):
        begin = time.time()
        for step in range(1, self.s.steps + 1):
            self.learn()
            if step % self.s.audit_every == 0:
                self.audit()
            if step % self.s.snapshot_every == 0:
                self.snapshot(step)
            if step % 50 == 0:
                print(f"{step}: {self.ema:.4f} (audit {self.audited})", flush=True)
        print(f"{self.s.steps} steps in {time.time() - begin:.2f}s, loss {self.ema:.4f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    App(read_settings()).run()
