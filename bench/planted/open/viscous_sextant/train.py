# Learn the unknown source term of a reaction-diffusion equation
#     u_t = nu * lap(u) + f_theta(u, lap(u), x, y)
# from snapshots. Diffusion is stepped implicitly, the learned reaction explicitly (IMEX Euler),
# and gradients go through the whole short rollout.
import os
import time

import numpy as np
import torch
import torch.nn as nn

SEED = 21
GRID = 26
NU = 0.6
DT = 0.02
ROLLOUT = 6
BATCH = 12
N_TRAJ = 64
SNAPSHOTS = 60
LR = 2e-3
MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 300))

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def laplacian_2d(n):
    """Five-point Laplacian with zero-flux walls, as a dense (n*n, n*n) matrix."""
    d = np.diag(-2.0 * np.ones(n)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    d[0, 0] = d[-1, -1] = -1.0
    return torch.tensor(np.kron(d, np.eye(n)) + np.kron(np.eye(n), d), dtype=torch.float32)


class ImplicitDiffusion(nn.Module):
    """Backward Euler for u_t = nu * lap(u)."""

    def __init__(self, n, nu, dt):
        super().__init__()
        self.register_buffer("lap", laplacian_2d(n))
        self.register_buffer("system", torch.eye(n * n) - dt * nu * self.lap)
        if os.environ.get("PLANTED_FIX") == "1":
            self.lu = torch.linalg.lu_factor(self.system)

    def forward(self, u):
        if os.environ.get("PLANTED_FIX") == "1":
            return torch.linalg.lu_solve(*self.lu, u.T).T
        return torch.linalg.solve(self.system, u.T).T


class Reaction(nn.Module):
    def __init__(self, n, hidden=40):
        super().__init__()
        g = torch.linspace(-1, 1, n)
        self.register_buffer("xy", torch.stack(torch.meshgrid(g, g, indexing="ij"), -1).reshape(1, n * n, 2))
        self.net = nn.Sequential(
            nn.Linear(4, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Linear(hidden, 1),
        )

    def forward(self, u, lap_u):
        feats = torch.cat([u.unsqueeze(-1), lap_u.unsqueeze(-1), self.xy.expand(u.shape[0], -1, -1)], dim=-1)
        return self.net(feats).squeeze(-1)


class HybridSolver(nn.Module):
    def __init__(self, n, nu, dt):
        super().__init__()
        self.dt = dt
        self.diffusion = ImplicitDiffusion(n, nu, dt)
        self.reaction = Reaction(n)

    def forward(self, u, steps):
        states = []
        for _ in range(steps):
            lap_u = u @ self.diffusion.lap
            u = self.diffusion(u + self.dt * self.reaction(u, lap_u))
            states.append(u)
        return torch.stack(states, dim=1)


def simulate(n_traj, n_snap):
    """Ground truth: bistable reaction with a hot corner, ten fine explicit steps per snapshot."""
    lap = laplacian_2d(GRID).numpy()
    g = np.linspace(-1, 1, GRID)
    xx, yy = np.meshgrid(g, g, indexing="ij")
    source = (0.8 * np.exp(-4 * ((xx - 0.6) ** 2 + (yy + 0.5) ** 2))).reshape(1, -1)
    u = np.zeros((n_traj, GRID * GRID))
    for k in range(n_traj):
        for _ in range(3):
            cx, cy, a = rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(-1.2, 1.2)
            u[k] += (a * np.exp(-6 * ((xx - cx) ** 2 + (yy - cy) ** 2))).reshape(-1)
    out = [u]
    fine = DT / 10
    for _ in range(n_snap - 1):
        for _ in range(10):
            u = u + fine * (NU * u @ lap + 3.0 * u * (1 - u**2) + source)
        out.append(u)
    return torch.tensor(np.stack(out, axis=1), dtype=torch.float32)


train_u = simulate(N_TRAJ, SNAPSHOTS)
test_u = simulate(8, SNAPSHOTS)
print("training data", tuple(train_u.shape), "range", round(train_u.min().item(), 2), round(train_u.max().item(), 2))

model = HybridSolver(GRID, NU, DT)
optimizer = torch.optim.Adam(model.reaction.parameters(), lr=LR)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=200, gamma=0.5)

start = time.perf_counter()
for step in range(1, MAX_STEPS + 1):
    traj = torch.from_numpy(rng.integers(0, N_TRAJ, BATCH))
    t0 = torch.from_numpy(rng.integers(0, SNAPSHOTS - ROLLOUT, BATCH))
    window = t0[:, None] + torch.arange(ROLLOUT + 1)
    truth = train_u[traj[:, None], window]

    pred = model(truth[:, 0], ROLLOUT)
    loss = ((pred - truth[:, 1:]) ** 2).mean() / DT**2

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()

    if step % 20 == 0:
        print(f"step {step:4d}  loss {loss.item():.5f}")
    if step % 100 == 0:
        with torch.no_grad():
            roll = model(test_u[:, 0], SNAPSHOTS - 1)
            err = (roll - test_u[:, 1:]).norm() / test_u[:, 1:].norm()
        print(f"step {step:4d}  relative error of a full test rollout {err.item():.4f}")

print(f"{MAX_STEPS} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")
