"""A loop on the first CUDA device. Arguments: name=value. `graph` captures a CUDA graph in the middle; `compile` uses torch.compile."""

import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

OPTIONS = {"steps": 60, "width": 1024, "layers": 4, "batch": 512, "graph": 0, "compile": 0, "amp": 0, "dropout": 0.1}
for argument in sys.argv[1:]:
    name, value = argument.split("=", 1)
    OPTIONS[name] = type(OPTIONS[name])(value)


def capture(model, x):
    """A graph of the model's forward, replayed once."""
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(side)
    with torch.no_grad(), torch.cuda.graph(graph):
        y = model(x)
    graph.replay()
    print("graph", repr(float(y.sum())), flush=True)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = True
    width = OPTIONS["width"]
    blocks = [layer for _ in range(OPTIONS["layers"]) for layer in (nn.Linear(width, width), nn.ReLU(), nn.Dropout(OPTIONS["dropout"]))]
    plain = nn.Sequential(*blocks, nn.Linear(width, 1)).cuda()
    model = torch.compile(plain) if OPTIONS["compile"] else plain
    optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-4, fused=True)
    scaler = torch.amp.GradScaler("cuda", enabled=bool(OPTIONS["amp"]))
    rows = OPTIONS["batch"] * OPTIONS["steps"]
    loader = DataLoader(TensorDataset(torch.randn(rows, width), torch.randn(rows, 1)), batch_size=OPTIONS["batch"], pin_memory=True)
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16, enabled=bool(OPTIONS["amp"])):
            loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(step, repr(loss.item()), flush=True)
        if OPTIONS["graph"] and step == OPTIONS["graph"]:
            capture(plain.eval(), x.clone())
            plain.train()
    if OPTIONS["compile"]:
        print("graph breaks", sum(torch._dynamo.utils.counters["graph_break"].values()))


if __name__ == "__main__":
    main()
