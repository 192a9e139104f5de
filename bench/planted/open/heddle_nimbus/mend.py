"""Learns to mend moth-eaten drafts."""

import os
import time
import tomllib
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from cloth import moth, piece
from weaver import Weaver

conf = tomllib.loads((Path(__file__).parent / "draft.toml").read_text())
CLOTH, RUN = conf["cloth"], conf["run"]


def batches(g):
    while True:
        whole = piece(CLOTH["batch"], CLOTH["picks"], CLOTH["shafts"], g)
        yield whole, *moth(whole, CLOTH["hidden"], CLOTH["shafts"], g)


def step_of(weaver, optimizer):
    def step(whole, eaten, holes):
        loss = cross_entropy(weaver(eaten)[holes], whole[holes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    torch.manual_seed(RUN["seed"])
    weaver = Weaver(CLOTH["shafts"], CLOTH["picks"], **conf["weaver"])
    step = step_of(weaver, torch.optim.NAdam(weaver.parameters(), lr=RUN["rate"]))
    steps = int(os.environ.get("PLANTED_STEPS", RUN["steps"]))
    began = time.perf_counter()
    for number, batch in zip(range(1, steps + 1), batches(torch.Generator().manual_seed(RUN["seed"]))):
        loss = step(*batch)
        if number % 50 == 0:
            print(f"{number:>5} {loss:.4f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")
