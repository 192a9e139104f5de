"""Every process picks apples in its own rows; gradients are averaged by hand."""

import os
import time

import torch
import torch.distributed as dist
from torch import nn

JOINED = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", 110))


class Picker(nn.Module):
    def __init__(self, width=24, depth=70):
        super().__init__()
        self.lift = nn.Linear(10, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.ripe = nn.Linear(width, 1)

    def forward(self, apple):
        h = self.lift(apple)
        for layer in self.layers:
            h = h + torch.tanh(layer(h)) * 0.1
        return self.ripe(h).squeeze(1)


def average_gradients(model, world):
    grads = [p.grad for p in model.parameters()]
    if JOINED:
        flat = torch.cat([g.flatten() for g in grads])
        dist.all_reduce(flat)
        for g, part in zip(grads, (flat / world).split([g.numel() for g in grads])):
            g.copy_(part.view_as(g))
        return
    for g in grads:
        dist.all_reduce(g)
        g.div_(world)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(2)
    model = Picker()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    g = torch.Generator().manual_seed(40 + rank)
    start = time.time()
    for _ in range(STEPS):
        apple = torch.randn(64, 10, generator=g)
        loss = nn.functional.binary_cross_entropy_with_logits(model(apple), (apple[:, 0] > 0).float())
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
    if rank == 0:
        print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
