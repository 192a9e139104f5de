import time

import torch
from settings import BATCH, MAX_STEPS
from torch import nn
from torch.utils.data import DataLoader

from data import LeafDataset

torch.set_num_threads(1)
torch.manual_seed(0)

net = nn.Sequential(
    nn.Conv2d(3, 24, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(24, 48, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(48, 64, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 6),
)
loader = DataLoader(LeafDataset(), batch_size=BATCH, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()

step, start = 0, time.time()
for epoch in range(100):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        if step >= MAX_STEPS:
            break
    if step >= MAX_STEPS:
        break
print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
