import os
import time

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

from field import pictures
from keeper import Keeper
from segnet import SegNet


def dice(logits, mask):
    p = logits.sigmoid()
    return 1 - (2 * (p * mask).sum((1, 2)) + 1) / (p.sum((1, 2)) + mask.sum((1, 2)) + 1)


def main():
    set_seed(17)
    torch.set_num_threads(1)
    steps = int(os.environ.get("PLANTED_STEPS", 500))
    accelerator = Accelerator(cpu=True)
    model = SegNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-4)
    loader = DataLoader(pictures(640), batch_size=20, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    keeper = Keeper(accelerator)

    step, start = 0, time.perf_counter()
    while step < steps:
        model.train()
        for images, masks in loader:
            with accelerator.accumulate(model):
                logits = model(images)
                loss = F.binary_cross_entropy_with_logits(logits, masks) + dice(logits, masks).mean()
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            step += 1
            keeper.update(step, loss.item(), model, optimizer)
            if step % 50 == 0:
                accelerator.print(f"step {step}: loss {loss.item():.4f} (best so far {keeper.best:.4f})")
            if step == steps:
                break
    accelerator.print(f"{step} steps in {time.perf_counter() - start:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
