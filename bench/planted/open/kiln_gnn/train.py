# Full-batch graph network with parameters in a dict, plain gradient descent with momentum by hand.
import os
import time

import torch

from graph import Propagate
from plant import plant

torch.manual_seed(0)
torch.set_num_threads(1)
STEPS = int(os.environ.get("PLANTED_STEPS", 900))
LR, MOMENTUM, DECAY = 0.2, 0.9, 5e-4

readings, wires, labels, mask = plant()
spread = Propagate(wires, len(readings))
print(f"{len(readings)} units, {len(wires)} belts, {int(mask.sum())} labelled")


def glorot(a, b):
    return (torch.randn(a, b) * (2 / (a + b)) ** 0.5).requires_grad_()


params = {
    "w1": glorot(24, 64),
    "b1": torch.zeros(64, requires_grad=True),
    "w2": glorot(64, 64),
    "b2": torch.zeros(64, requires_grad=True),
    "w3": glorot(64, 2),
}
speed = {name: torch.zeros_like(p) for name, p in params.items()}


def forward(p, x):
    h = torch.relu(spread(x @ p["w1"]) + p["b1"])
    h = torch.relu(h @ p["w2"] + p["b2"])
    return h @ p["w3"]


start = time.perf_counter()
for step in range(1, STEPS + 1):
    logits = forward(params, readings)
    loss = torch.nn.functional.cross_entropy(logits[mask], labels[mask])
    grads = torch.autograd.grad(loss, list(params.values()))
    with torch.no_grad():
        for (name, p), g in zip(params.items(), grads):
            speed[name].mul_(MOMENTUM).add_(g + DECAY * p)
            p -= LR * speed[name]
    if step % 50 == 0:
        hits = (logits.argmax(1) == labels).float()
        print(f"{step:4d} loss {loss.item():.4f} seen {hits[mask].mean().item():.3f} unseen {hits[~mask].mean().item():.3f}")
print(f"{STEPS} steps in {time.perf_counter() - start:.3f}s, loss {loss.item():.5f}")
