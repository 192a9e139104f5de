import os
import time

import torch
import torch._dynamo

from cloth import cloth
from inspector import Inspector

torch.manual_seed(9)
torch.set_num_threads(1)
torch._dynamo.config.recompile_limit = 1000  # else it stops compiling half-way
torch._dynamo.config.accumulated_recompile_limit = 4000

N_STEPS = int(os.environ.get("PLANTED_STEPS", 320))
BATCH = 40

x_all, y_all = cloth(1600)
model = Inspector()
compiled = torch.compile(model, backend="aot_eager")
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
order = torch.randperm(len(x_all))

t_start = time.time()
losses = []
for step in range(N_STEPS):
    at = (step * BATCH) % len(x_all)
    if at == 0:
        order = torch.randperm(len(x_all))
    pick = order[at : at + BATCH]
    grain = torch.randn(BATCH, 48, 6, 6)
    model.noise.reach(step // 8)
    logits = compiled(x_all[pick], grain)
    loss = torch.nn.functional.cross_entropy(logits, y_all[pick], label_smoothing=0.05)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if (step + 1) % 30 == 0:
        print(f"{step + 1}/{N_STEPS}: loss {sum(losses[-30:]) / 30:.4f}")
print(f"{N_STEPS} steps in {time.time() - t_start:.3f}s, loss {loss.item():.5f}")
