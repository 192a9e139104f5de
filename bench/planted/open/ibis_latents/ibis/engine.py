import time

import torch
import torch._dynamo

from .shapes import SIDE, rings
from .vae import Vae

torch._dynamo.config.recompile_limit = 512
torch._dynamo.config.accumulated_recompile_limit = 1024


def build(o):
    torch.manual_seed(8)
    model = Vae(SIDE * SIDE, o.hidden, o.latent, o.beta, o.warmup)
    objective = torch.compile(model, backend=o.backend)
    return model, objective, torch.optim.Adam(model.parameters(), lr=o.lr)


def fit(o):
    model, objective, optimizer = build(o)
    generator = torch.Generator().manual_seed(80)
    began = time.time()
    for step in range(o.steps):
        x = rings(o.batch, generator)
        loss = objective(x, torch.randn(o.batch, o.latent, generator=generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % o.per_epoch == 0:
            model.epoch += 1
        if step % 50 == 0:
            print(f"{step} {loss.item():.2f}")
    print(f"{o.steps} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")
