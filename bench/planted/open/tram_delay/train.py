import os
import sys
import time

import torch
import yaml
from torch.utils.data import DataLoader, TensorDataset

from journal import Journal
from network import DelayNet, timetable


def train(cfg: dict) -> None:
    torch.manual_seed(cfg["seed"])
    torch.set_num_threads(1)
    t = cfg["train"]
    steps = int(os.environ.get("PLANTED_STEPS", t["steps"]))
    data = TensorDataset(*timetable(cfg["data"]["lines"], cfg["data"]["days"], cfg["seed"]))
    loader = DataLoader(data, batch_size=t["batch"], shuffle=True, drop_last=True)
    model = DelayNet(**cfg["model"])
    optimizer = torch.optim.RMSprop(model.parameters(), lr=t["lr"])
    journal = Journal(cfg["log"]["folder"])

    def batches():
        while True:
            yield from loader

    start = time.perf_counter()
    for step, (x, y) in zip(range(1, steps + 1), batches()):
        optimizer.zero_grad()
        loss = torch.nn.functional.l1_loss(model(x), y)
        loss.backward()
        optimizer.step()
        journal.note(step, loss.item(), model, optimizer.param_groups[0]["lr"])
        if step % cfg["log"]["print_every"] == 0:
            print(f"step {step}/{steps} mean absolute error {loss.item():.4f} min")
    print(f"{steps} steps in {time.perf_counter() - start:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    with open(sys.argv[1] if len(sys.argv) > 1 else "config.yaml") as file:
        train(yaml.safe_load(file))
