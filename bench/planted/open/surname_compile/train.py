import os
import time

import torch
import torch._dynamo
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
torch._dynamo.config.recompile_limit = 512
FAST = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", 300))


class NameNet(nn.Module):
    def __init__(self, letters=60, dim=64, nations=12):
        super().__init__()
        self.embed = nn.Embedding(letters, dim)
        self.mix = nn.ModuleList([nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(1)])
        self.score = nn.Linear(dim, 1)
        self.out = nn.Linear(dim, nations)

    def forward(self, ids):
        h = self.embed(ids)
        for block in self.mix:
            h = h + block(h)
        weight = self.score(h).softmax(dim=1)
        return self.out((h * weight).sum(1))


def batches(n, g):
    """Lines of text of one length each; the length changes every few batches."""
    for k in range(n):
        length = 20 + (k // 3 * 37) % 397
        nation = torch.randint(0, 12, (16,), generator=g)
        ids = (torch.randint(0, 20, (16, length), generator=g) + nation[:, None] * 3) % 60
        yield ids, nation


net = NameNet()
compiled = torch.compile(net, dynamic=True if FAST else False, backend="aot_eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
start = time.time()
for step, (ids, nation) in enumerate(batches(STEPS, torch.Generator().manual_seed(1)), 1):
    loss = nn.functional.cross_entropy(compiled(ids), nation)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 50 == 0:
        print(step, loss.item(), flush=True)
print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
