"""Which faults does a pump have? python main.py --config configs/default.json [trainer.epochs=3 ...]"""
import argparse
import json
import logging
import random

import numpy as np
import torch

from datasets.vibration import FAULTS, build_loaders
from models.resnet1d import ResNet1d
from trainer import Trainer


def load_config(path, overrides):
    with open(path) as f:
        cfg = json.load(f)
    for item in overrides:
        key, value = item.split("=", 1)
        node = cfg
        *parents, leaf = key.split(".")
        for p in parents:
            node = node[p]
        node[leaf] = json.loads(value)
    return cfg


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="configs/default.json")
    parser.add_argument("overrides", nargs="*")
    args = parser.parse_args()
    cfg = load_config(args.config, args.overrides)

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(cfg["seed"])
    np.random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_loader, val_loader, pos_weight = build_loaders(cfg["data"], cfg["seed"])
    model = ResNet1d(cfg["data"]["channels"], len(FAULTS), **cfg["model"])
    trainer = Trainer(model, (train_loader, val_loader), pos_weight, FAULTS, cfg, device)
    logging.info("best %s: %.4f", cfg["trainer"]["monitor"], trainer.fit())


if __name__ == "__main__":
    main()
