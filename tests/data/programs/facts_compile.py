"""A compiled loop. Arguments: plant=none|shapes|limit|checkpoint|breaks, steps=…; prints losses to the last bit and torch's own counts."""

import sys

import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

OPTIONS = {"plant": "none", "steps": "40"} | dict(argument.split("=", 1) for argument in sys.argv[1:])
PLANT, STEPS = OPTIONS["plant"], int(OPTIONS["steps"])


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        if PLANT == "breaks" and x.sum().item() > 1e9:
            return x
        hidden = torch.softmax(self.first(x), dim=-1)
        if PLANT == "checkpoint":
            return checkpoint(self.second, hidden, use_reentrant=False)
        return self.second(hidden)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Body()
    compiled = torch.compile(model, backend="eager", dynamic=False if PLANT in ("shapes", "limit") else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        rows = 4
        if PLANT == "shapes" and step >= 10 and step % 6 == 0:
            rows = 4 + step // 6
        if PLANT == "limit":
            rows = 4 + step
        loss = compiled(torch.ones(rows, 8)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(step, loss.item().hex())
    print("breaks", sum(counters["graph_break"].values()), "graphs", counters["stats"]["unique_graphs"])


if __name__ == "__main__":
    main()
