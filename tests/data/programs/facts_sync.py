"""A loop that reads tensors back, with the host standing in for a device. Arguments: compiled=0|1; prints losses and torch's own counts."""

import sys

import torch
from torch import nn
from torch._dynamo.utils import counters

OPTIONS = {"compiled": "0"} | dict(argument.split("=", 1) for argument in sys.argv[1:])

try:
    from trainflash_probe.phases import loop
except ImportError:
    pass
else:
    sources = next(observer for observer in loop.loop.observers if type(observer).__name__ == "Compute")._sources
    next(source for source in sources if type(source).__name__ == "SyncFacts").watch(torch, everywhere=True)


class Marked(torch.Tensor):
    seen = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.seen += 1
        return super().__torch_function__(function, types, args, kwargs or {})


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        hidden = self.first(x).to(torch.float32)
        if float(hidden.sum()) > 1e9:
            return hidden
        return self.second(hidden.cpu() * hidden.sum().item() / 1e3)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Body()
    run = torch.compile(model, backend="eager") if OPTIONS["compiled"] == "1" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    marked = torch.ones(1).as_subclass(Marked)
    for step in range(40):
        loss = run(torch.ones(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        for _ in range(3):
            loss.item()
        if loss > 1e9:
            print("never")
        assert marked.item() == 1.0
        print(step, loss.detach().numpy().tobytes().hex())
    print("subclass", Marked.seen, "breaks", sum(counters["graph_break"].values()), "graphs", counters["stats"]["unique_graphs"])


if __name__ == "__main__":
    main()
