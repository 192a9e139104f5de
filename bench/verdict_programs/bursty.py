"""Short steps, with an evaluation every 25 and a checkpoint every 50."""

import torch
from burn import Burn
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(128, 384), nn.ReLU(), nn.Linear(384, 10))
optimizer = torch.optim.Adam(model.parameters())
inputs, targets = torch.randn(128, 128), torch.randint(10, (128,))
held_out = torch.randn(4096, 128)
for step in range(1, 1_000_000):
    with Burn():
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            model.eval()
            with torch.no_grad():
                model(held_out).argmax(1).float().mean().item()
            model.train()
        if step % 50 == 0:
            torch.save(model.state_dict(), "checkpoint.pt")
