import copy
import itertools
import os
import time
from pathlib import Path

import torch

from dyer import Dyer
from lion import Lion
from vats import Vats, batches

HERBS, BATCH, HELD = 30, 512, 1024
steps = int(os.environ.get("PLANTED_STEPS", 500))


@torch.no_grad()
def trial(dyer, recipe, colour):
    dyer.eval()
    surprise = dyer.surprise(recipe, colour)
    dyer.train()
    return surprise.item()


def keep(folder, step, dyer, steady, optimizer):
    folder.mkdir(exist_ok=True)
    state = {"step": step, "dyer": dyer.state_dict(), "steady": steady.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, folder / "last.tmp")
    os.replace(folder / "last.tmp", folder / "last.pt")


def passes(train, generator):
    for _ in itertools.count():
        yield from batches(*train, BATCH, generator)


def main():
    torch.manual_seed(64)
    train, held = Vats(9 * 1024, HERBS, seed=11).halves(HELD)
    dyer = Dyer(HERBS)
    steady = copy.deepcopy(dyer).requires_grad_(False)
    optimizer = Lion(dyer.parameters(), lr=1e-4)
    generator, folder = torch.Generator().manual_seed(3), Path("checkpoints")
    live, slow = list(dyer.parameters()), list(steady.parameters())
    total = 0.0

    began = time.perf_counter()
    for step, (recipe, colour) in enumerate(itertools.islice(passes(train, generator), steps), 1):
        loss = dyer.surprise(recipe, colour)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(live, 5.0)
        optimizer.step()
        if step % 4 == 0:
            torch._foreach_lerp_(slow, live, 0.02)
        total += loss.item()
        if step % 50 == 0:
            print(f"{step:5d}  mean {total / 50:.4f}", flush=True)
            total = 0.0
        if step % 175 == 0:
            print(f"{step:5d}  held out {trial(steady, *held):.4f}", flush=True)
            keep(folder, step, dyer, steady, optimizer)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
