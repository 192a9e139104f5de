"""python -m lantern.train --config base.toml"""

import argparse
import logging
import os
import tempfile
import time
import tomllib
from pathlib import Path

import torch

from . import portrait
from .learner import Learner
from .policy import Policy
from .world import Mazes

log = logging.getLogger("lantern")


@torch.no_grad()
def audit(policy: Policy, settings: dict, seed: int) -> float:
    """The mean reward of the likeliest moves in mazes that were never trained on."""
    mazes = Mazes(**settings, rng=torch.Generator().manual_seed(seed))
    total = 0.0
    for _ in range(settings["patience"]):
        reward, _ = mazes.step(policy(mazes.observe())[0].argmax(dim=-1))
        total += reward.mean().item()
    return total / settings["patience"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=Path("base.toml"))
    parser.add_argument("--updates", type=int)
    options = parser.parse_args()
    config = tomllib.loads(options.config.read_text())
    run = config["run"]
    updates = options.updates or int(os.environ.get("PLANTED_STEPS", run["updates"]))
    logging.basicConfig(level=run["log_level"], format="%(asctime)s %(name)s %(message)s", datefmt="%H:%M:%S")

    torch.manual_seed(run["seed"])
    rng = torch.Generator().manual_seed(run["seed"])
    mazes = Mazes(**config["world"], rng=rng)
    policy = Policy(mazes.features, **config["policy"])
    learner = Learner(policy, mazes, rng, **config["learner"])
    log.info("body at the start: %s", portrait.of_weight(policy.body[0].weight))

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        for number in range(1, updates + 1):
            figures = learner.update()
            if number % run["report_every"] == 0:
                log.info("%d %s", number, " ".join(f"{name} {value:.4f}" for name, value in figures.items()))
            if number % run["keep_every"] == 0:
                log.info("%d audit %.4f", number, audit(policy, config["world"], run["seed"] + 1))
                torch.save(policy.state_dict(), Path(folder) / f"{number:06d}.pt")
        seconds = time.perf_counter() - began
    print(f"{updates} steps in {seconds:.2f}s, loss {figures['loss']:.6f}")


if __name__ == "__main__":
    main()
