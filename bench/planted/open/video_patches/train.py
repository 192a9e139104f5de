import os
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
STEPS = int(os.environ.get("PLANTED_STEPS", 400))
SDPA = os.environ.get("PLANTED_FIX") == "1"
SIDE, FRAMES, DIM, HEADS = 16, 4, 48, 4


def attend(qkv):
    """qkv: batch, tokens, 3, heads, size."""
    q, k, v = qkv.unbind(2)
    if SDPA:
        return nn.functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v))).transpose(1, 2)
    energy = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    weight = torch.exp(energy - energy.amax(-1, keepdim=True))
    weight = weight / weight.sum(-1, keepdim=True)
    return torch.einsum("bhqk,bkhd->bqhd", weight, v)


class PatchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(3 * 4 * 4, DIM)
        self.place = nn.Parameter(torch.randn(FRAMES * SIDE * SIDE, DIM) * 0.02)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 96), nn.GELU(), nn.Linear(96, DIM))
        self.out = nn.Linear(DIM, 8)

    def forward(self, video):
        x = self.patch(video) + self.place
        b, n, _ = x.shape
        x = x + attend(self.qkv(x).view(b, n, 3, HEADS, DIM // HEADS)).reshape(b, n, DIM)
        return self.out((x + self.mlp(x)).mean(1))


g = torch.Generator().manual_seed(3)
clips = torch.randn(48, FRAMES * SIDE * SIDE, 48, generator=g)
action = torch.randint(0, 8, (48,), generator=g)
model = PatchNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
start = time.time()
for step in range(STEPS):
    pick = torch.randint(0, 48, (1,), generator=g)
    loss = nn.functional.cross_entropy(model(clips[pick]), action[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, f"{loss.item():.4f}", flush=True)
print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
