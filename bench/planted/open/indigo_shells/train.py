import os
import sys
import time

import torch
import torch.nn.functional as F

from shells.clouds import grow
from shells.edgeconv import ShellNet
from shells.options import read


def main() -> None:
    options = read(sys.argv[1:])
    torch.manual_seed(options.data.seed)
    clouds, labels = grow(**vars(options.data))
    model = ShellNet(**vars(options.model))
    optimizer = torch.optim.Adam(model.parameters(), lr=options.train.lr, fused=True)
    steps = int(os.environ.get("PLANTED_STEPS", options.train.steps))
    shuffle = torch.Generator().manual_seed(options.data.seed)

    start = time.perf_counter()
    order = torch.empty(0, dtype=torch.long)
    for step in range(1, steps + 1):
        if len(order) < options.train.batch:
            order = torch.randperm(len(clouds), generator=shuffle)
        pick, order = order[: options.train.batch], order[options.train.batch :]
        loss = F.cross_entropy(model(clouds[pick]), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.train.report == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
