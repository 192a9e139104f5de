"""Click-through-rate model with entity embeddings. Settings are in config.yaml."""

import os
import sys

import torch
import yaml

from ctr.data import ClickData
from ctr.model import ClickModel
from ctr.trainer import Trainer

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "config.yaml")
    with open(path) as f:
        cfg = yaml.safe_load(f)
    if os.environ.get("PLANTED_STEPS"):
        cfg["train"]["steps"] = int(os.environ["PLANTED_STEPS"])
    cfg["train"]["out_dir"] = os.path.join(HERE, cfg["train"]["out_dir"])

    torch.manual_seed(cfg["seed"])
    data = ClickData(seed=cfg["seed"], **cfg["data"])
    model = ClickModel(cfg["data"]["cardinalities"], cfg["data"]["numeric"], **cfg["model"])
    trainer = Trainer(model, data, cfg["train"], seed=cfg["seed"])
    trainer.run()


if __name__ == "__main__":
    main()
