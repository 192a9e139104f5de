"""Fits a normalising flow to the burst catalogue; odd bursts are those that it finds unlikely."""

import copy
import gc
import os
import time
import tomllib
from pathlib import Path

import torch
from torch import nn

from bursts import COLUMNS, Epochs, catalogue
from flow import Flow


class Average:
    def __init__(self, net, keep):
        self.net, self.keep = copy.deepcopy(net).requires_grad_(False), keep

    def follow(self, net):
        torch._foreach_lerp_(list(self.net.parameters()), list(net.parameters()), 1 - self.keep)


def keep(step, flow, average, optimizer, folder=Path("kept")):
    folder.mkdir(exist_ok=True)
    state = {"flow": flow.state_dict(), "average": average.net.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({"step": step} | state, folder / "new.pt")
    os.replace(folder / "new.pt", folder / "last.pt")


@torch.no_grad()
def judge(net, held):
    net.eval()
    return net(held).item()


def main():
    cfg = tomllib.loads(Path("flow.toml").read_text())
    fit = cfg["fit"]
    torch.manual_seed(6)
    rows, held = catalogue(cfg["catalogue"])
    flow = Flow(COLUMNS, **cfg["flow"])
    average = Average(flow, fit["average"])
    optimizer = torch.optim.Adam(flow.parameters(), fit["rate"], betas=(0.9, 0.98), foreach=True)
    epochs = Epochs(rows, fit["batch"], cfg["catalogue"]["epoch"], seed=8)
    steps, step, best = int(os.environ.get("PLANTED_STEPS", 450)), 0, float("inf")
    began = time.perf_counter()
    while step < steps:
        for x in epochs:
            step += 1
            loss = flow(x)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            size = nn.utils.clip_grad_norm_(flow.parameters(), fit["clip"])
            optimizer.step()
            average.follow(flow)
            if step % fit["tell_every"] == 0:
                print(f"{step:5d}  nll {loss.item():.4f}  gradient {size.item():.3f}", flush=True)
            if step % fit["judge_every"] == 0:
                best = min(best, judge(average.net, held))
                print(f"       held out, best: {best:.4f}", flush=True)
            if step % fit["keep_every"] == 0:
                keep(step, flow, average, optimizer)
                gc.collect()
            if step == steps:
                break
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
