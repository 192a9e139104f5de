import os
import time

import torch
from relations import Relations
from scenes import FIELDS, draw_scenes
from torch import nn

N_STEPS = int(os.environ.get("PLANTED_STEPS", 220))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(15)
    g = torch.Generator().manual_seed(15)
    objects, present = draw_scenes(1500, g)
    model = Relations(FIELDS)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    began = time.time()
    for step in range(N_STEPS):
        pick = torch.randint(0, 1500, (16,), generator=g)
        here = objects[pick], present[pick]
        first = here[0][..., 2].masked_fill(~here[1], -9.0).argmax(1)
        loss = nn.functional.cross_entropy(model(*here), first)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{N_STEPS} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
