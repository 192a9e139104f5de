"""One optimizer for each parameter, stepped by hooks while backward still runs."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizers = {parameter: torch.optim.Adam([parameter], foreach=False) for parameter in net.parameters()}


def update(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in net.parameters():
    parameter.register_post_accumulate_grad_hook(update)
for step in range(60):
    loss = net(torch.randn(8, 16)).square().mean()
    loss.backward()
    if step in (30, 59):
        print(step, loss.item(), torch._C._autograd._profiler_enabled())
