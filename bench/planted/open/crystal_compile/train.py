import os
import time

import torch
import torch._dynamo
from crystals import CrystalSource
from torch import nn

torch._dynamo.config.automatic_dynamic_shapes = False
torch._dynamo.config.recompile_limit = 400
torch._dynamo.config.accumulated_recompile_limit = 1000


class EnergyNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.atom = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, width))
        self.pair = nn.Linear(1, width)
        self.energy = nn.Linear(width, 1)

    def forward(self, places):
        apart = (places[:, :, None] - places[:, None]).pow(2).sum(-1, keepdim=True)
        weight = torch.exp(-4 * apart)
        h = self.atom(places) + torch.tanh(self.pair(weight.mean(2)))
        return self.energy(h.mean(1)).squeeze(-1)


@torch.compile(backend="aot_eager")
def energy_error(net, places, energy):
    return (net(places) - energy).abs().mean()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(41)
    steps = int(os.environ.get("PLANTED_STEPS", 100))
    net = EnergyNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    began = time.time()
    for step, (places, energy) in zip(range(1, steps + 1), CrystalSource(9)):
        loss = energy_error(net, places, energy)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"{step:4d} {loss.item():.4f}")
    print(f"{steps} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
