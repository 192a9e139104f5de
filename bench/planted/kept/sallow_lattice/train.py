"""Traffic speed forecasting on a road-sensor graph with temporal and Chebyshev graph convolutions."""
import argparse
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FIX = os.environ.get("PLANTED_FIX") == "1"


def simulate_speeds(n_sensors, n_steps, rng):
    """Sensors in the plane; speed is a daily curve plus jams that diffuse to the neighbours."""
    xy = rng.random((n_sensors, 2))
    dist = np.linalg.norm(xy[:, None] - xy[None], axis=-1)
    sigma = 0.09
    weights = np.exp(-(dist / sigma) ** 2)
    weights[weights < 0.01] = 0.0
    np.fill_diagonal(weights, 0.0)
    spread = weights / weights.sum(1, keepdims=True)
    jam = np.zeros(n_sensors)
    speeds = np.zeros((n_steps, n_sensors), dtype=np.float32)
    phase = rng.normal(0, 0.3, n_sensors)
    for t in range(n_steps):
        starts = rng.random(n_sensors) < 0.01
        jam = 0.75 * jam + 0.2 * spread @ jam + starts * rng.uniform(5, 20, n_sensors)
        day = 60 - 8 * np.sin(2 * np.pi * t / 288 + phase)
        speeds[t] = day - jam + rng.normal(0, 0.8, n_sensors)
    return weights.astype(np.float32), speeds


def chebyshev_basis(weights, order):
    """T_0 .. T_{order-1} of the rescaled normalized Laplacian, stacked to [order, N, N]."""
    n = weights.shape[0]
    eye = torch.eye(n, dtype=weights.dtype, device=weights.device)
    d = weights.sum(dim=1).clamp(min=1e-6).rsqrt()
    lap = eye - d[:, None] * weights * d[None, :]
    lambda_max = torch.linalg.eigvalsh(lap)[-1]
    scaled = 2 * lap / lambda_max - eye
    basis = [eye, scaled]
    for _ in range(2, order):
        basis.append(2 * scaled @ basis[-1] - basis[-2])
    return torch.stack(basis[:order])


class GatedTemporalConv(nn.Module):
    def __init__(self, c_in, c_out, kernel):
        super().__init__()
        self.conv = nn.Conv2d(c_in, 2 * c_out, (kernel, 1))
        self.skip = nn.Conv2d(c_in, c_out, 1)
        self.kernel = kernel

    def forward(self, x):
        value, gate = self.conv(x).chunk(2, dim=1)
        return (value + self.skip(x)[:, :, self.kernel - 1:]) * torch.sigmoid(gate)


class ChebConv(nn.Module):
    def __init__(self, weights, c_in, c_out, order):
        super().__init__()
        self.order = order
        self.register_buffer("weights", weights)
        self.register_buffer("cached", chebyshev_basis(weights, order) if FIX else None)
        self.mix = nn.Conv2d(order * c_in, c_out, 1)

    def forward(self, x):
        basis = self.cached if FIX else chebyshev_basis(self.weights, self.order)
        terms = [x] + [torch.matmul(x, basis[k]) for k in range(1, self.order)]
        return self.mix(torch.cat(terms, dim=1))


class Block(nn.Module):
    def __init__(self, weights, c_in, c_mid, c_out, order):
        super().__init__()
        self.first = GatedTemporalConv(c_in, c_mid, 3)
        self.graph = ChebConv(weights, c_mid, c_mid, order)
        self.second = GatedTemporalConv(c_mid, c_out, 3)
        self.norm = nn.BatchNorm2d(c_out)

    def forward(self, x):
        return self.norm(self.second(F.relu(self.graph(self.first(x)))))


class TrafficNet(nn.Module):
    def __init__(self, weights, history, hidden=12, order=3):
        super().__init__()
        self.blocks = nn.Sequential(Block(weights, 1, hidden, hidden, order),
                                    Block(weights, hidden, hidden, hidden, order))
        self.head = nn.Conv2d(hidden, 1, (history - 8, 1))

    def forward(self, x):
        return self.head(self.blocks(x.unsqueeze(1))).squeeze(1).squeeze(1)


def windows(speeds, starts, history, horizon):
    x = torch.stack([speeds[s:s + history] for s in starts])
    y = speeds[starts + history + horizon - 1]
    return x, y


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--sensors", type=int, default=512)
    ap.add_argument("--history", type=int, default=12)
    ap.add_argument("--horizon", type=int, default=3)
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 300)))
    ap.add_argument("--seed", type=int, default=21)
    args = ap.parse_args()

    rng = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)
    weights, speeds = simulate_speeds(args.sensors, 288 * 6, rng)
    cut = 288 * 5
    mean, std = speeds[:cut].mean(), speeds[:cut].std()
    speeds = torch.from_numpy((speeds - mean) / std)
    last_start = cut - args.history - args.horizon

    model = TrafficNet(torch.from_numpy(weights), args.history)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    begin = time.time()
    for step in range(1, args.steps + 1):
        starts = torch.from_numpy(rng.integers(0, last_start, args.batch))
        x, y = windows(speeds, starts, args.history, args.horizon)
        loss = F.huber_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step:4d}  huber {loss.item():.4f}")
    took = time.time() - begin

    model.eval()
    with torch.no_grad():
        starts = torch.arange(cut, len(speeds) - args.history - args.horizon, 8)
        x, y = windows(speeds, starts, args.history, args.horizon)
        print(f"test MAE {(model(x) - y).abs().mean().item() * std:.2f} mph")
    print(f"{args.steps} steps in {took:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
