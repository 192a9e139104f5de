import argparse
import os
import time
from pathlib import Path

import torch
import yaml
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from .network import FamilyNet
from .traces import TraceSet, simulate


def forever(loader):
    while True:
        yield from loader


def run(config):
    fit, data = config["fit"], config["data"]
    torch.manual_seed(fit["seed"])
    dataset = TraceSet(simulate(**data, seed=fit["seed"]))
    loader = DataLoader(
        dataset,
        fit["batch_size"],
        shuffle=True,
        drop_last=True,
        collate_fn=dataset.collate,
        generator=torch.Generator().manual_seed(fit["seed"]),
    )
    net = FamilyNet(data["calls"], data["families"], **config["model"])
    optimizer = torch.optim.AdamW(net.parameters(), lr=fit["lr"])
    steps = int(os.environ.get("PLANTED_STEPS", fit["epochs"] * len(loader)))
    start = time.perf_counter()
    right = seen = 0
    for step, (tokens, family) in zip(range(1, steps + 1), forever(loader)):
        logits = net(tokens)
        loss = cross_entropy(logits, family)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), fit["clip"])
        optimizer.step()
        right += (logits.argmax(1) == family).sum().item()
        seen += len(family)
        if step % 50 == 0:
            print(f"{step}/{steps} loss {loss.item():.4f} acc {right / seen:.3f}")
            right = seen = 0
    print(f"{steps} steps in {time.perf_counter() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, default="config.yaml")
    torch.set_num_threads(1)
    run(yaml.safe_load(parser.parse_args().config.read_text()))
