"""Inverse dynamics of a two-link arm with a hand-written recurrent cell."""

import os
import time

import torch
from torch import nn

torch.set_num_threads(1)


class ArmCell(nn.Module):
    """Leaky cell with a learned time constant; the version from the lab's notebook."""

    def __init__(self, n_in, n):
        super().__init__()
        self.inp = nn.Linear(n_in, n)
        self.rec = nn.Linear(n, n)
        self.tau = nn.Parameter(torch.zeros(n))
        self.gain = nn.Parameter(torch.ones(n))

    def forward(self, x, h):
        alpha = torch.sigmoid(self.tau)
        drive = self.inp(x) + self.rec(h)
        drive = self.gain * torch.tanh(drive)
        return (1 - alpha) * h + alpha * drive


class Arm(nn.Module):
    def __init__(self, n=192):
        super().__init__()
        self.n = n
        self.cell = ArmCell(6, n)
        self.torque = nn.Linear(n, 2)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.n)
        out = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            out.append(self.torque(h))
        return torch.stack(out, 1)


def swings(n, steps, g):
    q = torch.randn(n, 1, 2, generator=g) + 0.1 * torch.randn(n, steps, 2, generator=g).cumsum(1)
    dq = torch.diff(q, dim=1, prepend=q[:, :1])
    ddq = torch.diff(dq, dim=1, prepend=dq[:, :1])
    tau = torch.stack([q[..., 0].sin() + dq[..., 1], (q[..., 0] + q[..., 1]).sin() + ddq[..., 0]], -1)
    return torch.cat([q, dq, ddq], -1), tau


def main():
    torch.manual_seed(0)
    if os.environ.get("PLANTED_FIX") != "1":
        torch.autograd.set_detect_anomaly(True)
    g = torch.Generator().manual_seed(1)
    model = Arm()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    updates = int(os.environ.get("PLANTED_STEPS", 300))
    smooth = None
    start = time.perf_counter()
    for u in range(updates):
        x, tau = swings(160, 24, g)
        loss = nn.functional.mse_loss(model(x), tau)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
        if u % 50 == 49:
            print(f"{u + 1}: {smooth:.4f}")
    print(f"{updates} steps in {time.perf_counter() - start:.2f}s, loss {smooth:.4f}")


if __name__ == "__main__":
    main()
