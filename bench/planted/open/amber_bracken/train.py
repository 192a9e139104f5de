"""Learn a dynamics model of a two-link arm for model predictive control."""

import argparse
import os
import time

import torch
import torch.optim
from torch import nn

import optim


def arm_step(state, torque, dt=0.05):
    """state: (..., 4) = two angles and two velocities."""
    q, qd = state[..., :2], state[..., 2:]
    c = torch.cos(q[..., 1])
    m11, m12, m22 = 2.0 + c, 0.5 + 0.5 * c, torch.full_like(c, 0.5)
    bias = 0.5 * torch.sin(q[..., 1])
    force = (
        torch.stack(
            [
                torque[..., 0] + bias * (2 * qd[..., 0] * qd[..., 1] + qd[..., 1] ** 2),
                torque[..., 1] - bias * qd[..., 0] ** 2,
            ],
            -1,
        )
        - 0.3 * qd
    )
    det = m11 * m22 - m12**2
    acc = torch.stack(
        [
            (m22 * force[..., 0] - m12 * force[..., 1]) / det,
            (m11 * force[..., 1] - m12 * force[..., 0]) / det,
        ],
        -1,
    )
    qd = (qd + dt * acc).clamp(-6, 6)
    return torch.cat([q + dt * qd, qd], -1)


def collect(num_rollouts, length, seed):
    g = torch.Generator().manual_seed(seed)
    state = torch.cat([3 * torch.rand(num_rollouts, 2, generator=g) - 1.5, torch.zeros(num_rollouts, 2)], -1)
    torque = torch.zeros(num_rollouts, 2)
    rows = []
    for _ in range(length):
        torque = 0.8 * torque + 0.6 * torch.randn(num_rollouts, 2, generator=g)
        nxt = arm_step(state, torque)
        rows.append((state, torque, nxt - state))
        state = nxt
    states, torques, deltas = (torch.cat(x) for x in zip(*rows))
    inputs = torch.cat([torch.sin(states[:, :2]), torch.cos(states[:, :2]), states[:, 2:], torques], 1)
    return inputs, (deltas - deltas.mean(0)) / deltas.std(0)


class DynamicsModel(nn.Module):
    """Gaussian prediction of the normalised state change."""

    def __init__(self, in_dim, out_dim, width, depth):
        super().__init__()
        layers = [nn.Linear(in_dim, width), nn.SiLU()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.SiLU()]
        self.body = nn.Sequential(*layers)
        self.mean = nn.Linear(width, out_dim)
        self.logvar = nn.Linear(width, out_dim)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.logvar(h).clamp(-6, 2)


def nll(mean, logvar, target):
    return 0.5 * (logvar + (target - mean) ** 2 * torch.exp(-logvar)).mean()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--steps", type=int, default=1000)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--width", type=int, default=768)
    ap.add_argument("--depth", type=int, default=4)
    ap.add_argument("--rollouts", type=int, default=256)
    ap.add_argument("--length", type=int, default=60)
    ap.add_argument("--lr", type=float, default=2e-4)
    ap.add_argument("--weight-decay", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=13)
    args = ap.parse_args()
    steps = int(os.environ.get("PLANTED_STEPS", args.steps))
    torch.manual_seed(args.seed)

    inputs, targets = collect(args.rollouts, args.length, args.seed)
    model = DynamicsModel(inputs.shape[1], targets.shape[1], args.width, args.depth)
    if os.environ.get("PLANTED_FIX") == "1":
        opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay, fused=True)
    else:
        opt = optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)

    start = time.perf_counter()
    for step in range(1, steps + 1):
        idx = torch.randint(len(inputs), (args.batch_size,))
        mean, logvar = model(inputs[idx])
        loss = nll(mean, logvar, targets[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"{step:5d}  nll {loss.item():+.4f}")
    elapsed = time.perf_counter() - start
    print(f"{steps} steps in {elapsed:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
