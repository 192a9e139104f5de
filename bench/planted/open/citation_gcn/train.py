import os
import time

import torch
from graph import FAST, citations, normalised_adjacency
from torch import nn


class GCN(nn.Module):
    def __init__(self, inputs=64, hidden=48, classes=6):
        super().__init__()
        self.first, self.second = nn.Linear(inputs, hidden), nn.Linear(hidden, classes)

    def forward(self, x, adjacency):
        h = torch.relu(torch.sparse.mm(adjacency, self.first(x)))
        return torch.sparse.mm(adjacency, self.second(h))


torch.set_num_threads(1)
torch.manual_seed(0)
nodes = 2500
edges = citations(nodes)
x = torch.randn(nodes, 64)
y = x[:, :6].argmax(1)
known = torch.rand(nodes) < 0.3
model = GCN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
adjacency = None
epochs, start = int(os.environ.get("PLANTED_STEPS", 300)), time.time()
for epoch in range(epochs):
    if adjacency is None or not FAST:
        adjacency = normalised_adjacency(edges, nodes)
    optimizer.zero_grad()
    out = model(x, adjacency)
    loss = nn.functional.cross_entropy(out[known], y[known])
    loss.backward()
    optimizer.step()
    if epoch % 50 == 0:
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
print(f"{epochs} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
