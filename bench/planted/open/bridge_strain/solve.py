import os
import time

import torch
from torch import nn

from beam import points, residual

torch.manual_seed(88)
torch.set_num_threads(1)

net = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
inside, ends = points(700, 1), points(64, 2)
ends = (ends[0].round(), ends[1])
optimizer = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=10, history_size=12, line_search_fn="strong_wolfe")
rounds = int(os.environ.get("PLANTED_STEPS", 40))
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    _, inner = residual(net, *inside)
    bend, _ = residual(net, *ends)
    loss = inner.square().mean() + 10 * bend.square().mean()
    loss.backward()
    return loss


start = time.perf_counter()
best = float("inf")
for k in range(1, rounds + 1):
    loss = optimizer.step(closure).item()
    best = min(best, loss)
    print(f"round {k:3d}: residual {loss:.6f} (best {best:.6f}) after {calls} evaluations")
    if k % 10 == 0:
        torch.save({"net": net.state_dict(), "round": k}, "beam.pt")
print(f"{rounds} steps in {time.perf_counter() - start:.3f}s, loss {loss:.6f}")
