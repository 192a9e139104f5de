import os
import random
import time

import torch
import torch._dynamo
import torch.nn.functional as F

from melody.model import Melody

FAST = os.environ.get("PLANTED_FIX") == "1"


def songs(count, rng):
    for _ in range(count):
        bars = rng.randint(10, 160)
        yield torch.tensor([[(40 + 7 * k + rng.randint(0, 3)) % 128 for k in range(bars + 1)] for _ in range(6)])


def padded(song, multiple=176):
    width = -(-song.shape[1] // multiple) * multiple
    return F.pad(song, (0, width - song.shape[1]), value=-1)


def main(steps):
    torch._dynamo.config.recompile_limit = 1000
    torch._dynamo.config.accumulated_recompile_limit = 1000
    model = Melody()
    step_model = torch.compile(model, backend="eager", dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    start = time.time()
    for n, song in enumerate(songs(steps, random.Random(2))):
        if FAST:
            song = padded(song)
        logits = step_model(song[:, :-1].clamp(min=0))
        loss = F.cross_entropy(logits.flatten(0, 1), song[:, 1:].flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if n % 50 == 0:
            print(n, f"{loss.item():.4f}", flush=True)
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    main(int(os.environ.get("PLANTED_STEPS", 400)))
