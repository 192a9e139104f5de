"""Solve the equation with a network."""

import json
import os
import sys
import time
from pathlib import Path

import torch
from ledger import Ledger
from network import Solution, pure
from problem import Sampler, starting_curve
from residual import fresh_state, make_loss, make_update

FIXED = os.environ.get("PLANTED_FIX") == "1"


def build(config: dict, ledger: Ledger):
    """Parameters, and the functions of a step with their entries in the ledger."""
    module = Solution(config["waves"], config["width"], config["depth"])
    call = pure(module)
    update = make_update(make_loss(call, config["start_weight"]), config["rate"])
    sampler = Sampler(config["inside"], config["start"], config["edge"], config["seed"])
    record = ledger.timed if FIXED else ledger.counted
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    return parameters, call, ledger.timed("draw")(sampler.draw), record("update")(update)


def main(path: Path) -> None:
    config = json.loads(path.read_text())
    steps = int(os.environ.get("PLANTED_STEPS", config["steps"]))
    torch.manual_seed(config["seed"])
    ledger = Ledger()
    parameters, call, draw, update = build(config, ledger)
    state = fresh_state(parameters)
    grid = torch.linspace(-1, 1, 101)
    at_start = torch.stack([torch.zeros_like(grid), grid], dim=1)

    began = time.perf_counter()
    for step in range(1, steps + 1):
        parameters, state, loss = update(parameters, state, draw())
        if step % config["report"] == 0:
            with torch.no_grad():
                gap = (call(parameters, at_start) - starting_curve(grid)).abs().max()
            print(f"step {step} loss {loss.item():.5f} start gap {gap.item():.4f}", flush=True)
    seconds = time.perf_counter() - began
    print(ledger.table())
    print(f"{steps} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "config.json"))
