import os
import time

import torch
from torch.nn.functional import smooth_l1_loss

from grids import draw_grid, join
from settings import Settings
from surrogate import Surrogate


def objective(answer, grid, weights):
    parts = {name: smooth_l1_loss(answer[name], getattr(grid, name)) for name in weights}
    return sum(weights[name] * part for name, part in parts.items()), parts


def train(s):
    g = torch.Generator().manual_seed(s.seed)
    torch.manual_seed(s.seed)
    grids = [draw_grid(s.buses, s.chords, g) for _ in range(s.grids)]
    model = Surrogate(s.width, s.rounds)
    opt = torch.optim.Adam(model.parameters(), lr=s.lr)
    steps = int(os.environ.get("PLANTED_STEPS", s.steps))
    t0 = time.time()
    for step in range(steps):
        picks = torch.randint(0, s.grids, (s.batch,), generator=g).tolist()
        grid = join([grids[i] for i in picks])
        loss, parts = objective(model(grid), grid, s.weights)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 0:
            print(step, " ".join(f"{name} {part.item():.4f}" for name, part in parts.items()))
    print(f"{steps} steps in {time.time() - t0:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(Settings())
