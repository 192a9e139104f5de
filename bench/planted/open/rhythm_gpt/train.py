import os
import time

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (s.view(b, t, self.heads, -1).transpose(1, 2) for s in self.qkv(self.n1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class Rhythm(nn.Module):
    def __init__(self, events=48, dim=96, block=128):
        super().__init__()
        self.events, self.place = nn.Embedding(events, dim), nn.Embedding(block, dim)
        self.layers = nn.Sequential(Layer(dim, 3), Layer(dim, 3))
        self.head = nn.Linear(dim, events)

    def forward(self, ids):
        return self.head(self.layers(self.events(ids) + self.place.weight[: ids.shape[1]]))


track = torch.arange(100_000)
track = (track % 16 + track // 64 % 3 * 16) % 48
model = Rhythm()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps, start = int(os.environ.get("PLANTED_STEPS", 500)), time.time()
for step in range(steps):
    at = torch.randint(len(track) - 129, (8, 1)) + torch.arange(129)
    chunk = track[at]
    loss = F.cross_entropy(model(chunk[:, :-1]).flatten(0, 1), chunk[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item(), flush=True)
print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
