"""Which kind of variable star? Light curves come through a background thread that decodes and batches."""

import os
import time

import torch
from archive import Archive
from net import CurveNet
from notes import Notebook
from pipe import Background, batches

torch.set_num_threads(1)


def stream(archive, size, steps):
    """Decoded batches, a few ahead of the training."""
    return Background(batches(archive, size, steps), depth=3)


def main():
    torch.manual_seed(17)
    steps = int(os.environ.get("PLANTED_STEPS", 1500))
    archive = Archive()
    net = CurveNet(archive.classes)
    opt = torch.optim.AdamW(net.parameters(), lr=1.5e-3, fused=True)
    notebook = Notebook("notebook.jsonl")
    mean, began = None, time.time()
    for step, (x, y) in enumerate(stream(archive, 16, steps), 1):
        loss = torch.nn.functional.cross_entropy(net(x), y, label_smoothing=0.05)
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean = loss.item() if mean is None else 0.96 * mean + 0.04 * loss.item()
        notebook.write(step, mean, net)
        if step % 50 == 0:
            print(f"{step} {mean:.4f}", flush=True)
    print(f"{steps} steps in {time.time() - began:.2f}s, loss {mean:.4f}")


if __name__ == "__main__":
    main()
