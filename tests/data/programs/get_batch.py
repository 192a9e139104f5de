"""A loop without DataLoader: a function (or, with `generator`, a generator; with `array`, one of NumPy's) makes the batches; evaluation as
nanoGPT does it.
"""

import sys
import time

import numpy
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
data = torch.randint(0, 50, (4000,))
model = nn.Sequential(nn.Embedding(50, 16), nn.Flatten(), nn.Linear(16 * 8, 50))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def windows(count):
    time.sleep(0.006)
    starts = torch.randint(0, len(data) - 9, (count,))
    return torch.stack([data[s : s + 9] for s in starts])


def get_batch(count=4, *, device="cpu"):
    rows = windows(count)
    return rows[:, :-1].to(device), rows[:, -1].to(device)


def batches():
    while True:
        yield get_batch()


def estimate_loss():
    model.eval()
    losses = []
    with torch.no_grad():
        for _ in range(2):
            x, y = get_batch()
            losses.append(nn.functional.cross_entropy(model(x), y).item())
    model.train()
    return sum(losses) / len(losses)


def drawn():
    chance = numpy.random.default_rng(1)
    while True:
        time.sleep(0.006)
        yield chance.integers(0, len(data) - 9, 4)


def arrays(starts_of_batches):
    text = data.numpy()
    for starts in starts_of_batches:
        rows = numpy.stack([text[s : s + 9] for s in starts])
        yield rows[:, :-1].copy(), rows[:, -1].copy()


stream = batches()
if "array" in sys.argv:
    stream = arrays(drawn())
for step in range(40):
    x, y = next(stream) if {"generator", "array"} & set(sys.argv) else get_batch()
    if "array" in sys.argv:
        x, y = torch.from_numpy(x), torch.tensor(y)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print("eval", estimate_loss())
print("done", repr(loss.item()))
