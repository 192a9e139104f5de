import os
import tempfile
import time

import torch
from recipes import Recipes, write_recipes
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
torch.manual_seed(0)
MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 1000))

folder = tempfile.mkdtemp()
write_recipes(os.path.join(folder, "recipes.jsonl"))
train = DataLoader(Recipes(os.path.join(folder, "recipes.jsonl")), batch_size=16, shuffle=True)

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=3e-3)
steps, begin = 0, time.time()
for epoch in range(1000):
    total = 0.0
    for vectors, rating in train:
        optimizer.zero_grad()
        loss = (model(vectors).squeeze(1) - rating).square().mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
        steps += 1
        if steps >= MAX_STEPS:
            break
    if epoch % 10 == 0:
        print(epoch, total)
    if steps >= MAX_STEPS:
        break
print(f"{steps} steps in {time.time() - begin:.2f}s, loss {loss.item():.6f}")
