"""python -m lagoon.train [lagoon.json]"""

import sys
import time

import torch

from lagoon.config import read
from lagoon.ensemble import Ensemble
from lagoon.forecaster import Globe
from lagoon.gauges import Gauges


def batches(gauges, config):
    """A different draw for each member."""
    for _ in range(config.steps):
        pairs = [gauges.draw(config.batch) for _ in range(config.members)]
        yield torch.stack([now for now, _ in pairs]), torch.stack([later for _, later in pairs])


def train(config):
    torch.manual_seed(config.seed)
    gauges = Gauges(config)
    globe, ensemble = Globe(config, gauges), Ensemble(config)
    began, value = time.time(), float("nan")
    for step, (levels, ahead) in enumerate(batches(gauges, config), 1):
        basis, fit = globe.operators()
        value = ensemble.update(levels, ahead, basis, fit)
        if step % config.report == 0:
            print(f"step {step} mean loss {value:.5f}", flush=True)
    print(f"{config.steps} steps in {time.time() - began:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    train(read(sys.argv[1] if len(sys.argv) > 1 else "lagoon.json"))
