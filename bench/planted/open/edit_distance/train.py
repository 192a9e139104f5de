import os
import random
import time

import torch
from torch import nn
from torch.func import functional_call

FAST = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", 1800))
LENGTH, BATCH = 24, 48

torch.set_num_threads(1)
torch.manual_seed(0)
rng = random.Random(3)
model = nn.Sequential(nn.Linear(2 * LENGTH * 4, 320), nn.Tanh(), nn.Linear(320, 320), nn.Tanh(), nn.Linear(320, 1))
weights = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def batched_levenshtein(a, b):
    row = torch.arange(b.shape[1] + 1).repeat(len(a), 1)
    for i in range(a.shape[1]):
        cost = torch.minimum(row[:, 1:] + 1, row[:, :-1] + (a[:, i, None] != b).long())
        new = torch.cat([torch.full((len(a), 1), i + 1), cost], 1)
        steps = torch.arange(new.shape[1])
        row = (new - steps).cummin(1).values + steps
    return row[:, -1]


def get_batch():
    pairs = [[rng.choices(range(4), k=LENGTH) for _ in range(2)] for _ in range(BATCH)]
    a, b = torch.tensor([p[0] for p in pairs]), torch.tensor([p[1] for p in pairs])
    if FAST:
        target = batched_levenshtein(a, b).float()
    else:
        target = torch.tensor([float(levenshtein(*p)) for p in pairs])
    return nn.functional.one_hot(torch.cat([a, b], 1), 4).float().flatten(1), target


start = time.time()
for step in range(STEPS):
    x, target = get_batch()
    prediction = functional_call(model, weights, (x,)).squeeze(1)
    loss = (prediction - target / LENGTH).square().mean()
    grads = torch.autograd.grad(loss, list(weights.values()))
    weights = {name: (w - 0.01 * d).detach().requires_grad_() for (name, w), d in zip(weights.items(), grads)}
    if step % 100 == 0:
        print(step, round(loss.item(), 4), flush=True)
print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
