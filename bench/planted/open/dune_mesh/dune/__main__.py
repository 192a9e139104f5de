import os
import pathlib
import time

import torch
import yaml

from .layers import DuneNet
from .mesh import HeatFamily, Mesh
from .simulate import sand_flux

cfg = yaml.safe_load(pathlib.Path(__file__).parent.parent.joinpath("conf.yaml").read_text())


def step(net, opt, mesh, generator):
    before, after = sand_flux(mesh, cfg["batch"], generator)
    loss = (net(before, mesh.xyz) - after).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


torch.manual_seed(0)
mesh = Mesh(**cfg["mesh"])
net = DuneNet(HeatFamily(mesh, cfg["scales"]), **cfg["net"])
opt = torch.optim.Adam(net.parameters(), lr=cfg["optim"]["lr"])
steps = int(os.environ.get("PLANTED_STEPS", cfg["optim"]["steps"]))
generator = torch.Generator().manual_seed(5)
start = time.time()
for i in range(steps):
    loss = step(net, opt, mesh, generator)
    if i % 50 == 0:
        print(i, f"{loss:.5f}")
print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss:.6f}")
