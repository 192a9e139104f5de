# %% [markdown]
# # Learning three-body motion
# A neural ordinary differential equation fitted to short stretches of orbits.

# %%
import time

import torch

from flow import Field, rk4, unroll
from orbits import truth
from plots import sparkline, table
from setup_cell import begin, budget

begin(seed=43)

# %% data
DT, POINTS, BATCH = 0.1, 6, 1024
orbits = truth(count=400, points=40, dt=DT, seed=43)
print("orbits", tuple(orbits.shape))

# %% model
field = Field(orbits.shape[-1], width=64)
optimizer = torch.optim.Adam(field.parameters(), lr=2e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.7, patience=200)
picker = torch.Generator().manual_seed(44)


# %% helpers
def stretch():
    which = torch.randint(len(orbits), (BATCH,), generator=picker)
    start = torch.randint(orbits.shape[1] - POINTS, (BATCH,), generator=picker)
    return orbits[which[:, None], start[:, None] + torch.arange(POINTS)]


def discrepancy(guess, seen):
    ahead = torch.linspace(1.0, 0.5, guess.shape[1])[None, :, None]
    return ((guess - seen).abs().clamp(max=5.0) * ahead).mean()


@torch.no_grad()
def energy_drift(points: int = 12):
    state = orbits[:32, 0]
    first = state.square().sum(-1)
    for _ in range(points):
        state = rk4(field, state, DT)
    return (state.square().sum(-1) - first).abs().mean().item()


# %% fit
history, began, steps = [], time.time(), budget(2200)
for step in range(1, steps + 1):
    seen = stretch()
    optimizer.zero_grad()
    guess = unroll(field, seen[:, 0], DT, POINTS)
    loss = discrepancy(guess, seen)
    loss.backward()
    total = torch.nn.utils.clip_grad_norm_(field.parameters(), 1.0)
    optimizer.step()
    history.append(loss.item())
    plateau.step(history[-1])
    if step % 50 == 0:
        print(f"step {step} loss {history[-1]:.4f} norm {total:.3f} {sparkline(history)}", flush=True)
    if step % 500 == 0:
        print(table({"drift": energy_drift(), "gain": field.gain.item()}), flush=True)
seconds = time.time() - began

# %% summary
print(table({"first": history[0], "best": min(history)}))
print(f"{steps} steps in {seconds:.3f}s, loss {history[-1]:.6f}")
