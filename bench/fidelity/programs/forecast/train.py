"""Forecast seasonal series: python train.py [--resume out/step_55.pt]"""

import json
import sys

import torch

from dataset import Windows, make_series
from network import Forecaster
from trainer import Trainer


def main():
    with open("config.json") as f:
        config = json.load(f)
    torch.set_num_threads(1)
    torch.manual_seed(config["seed"])
    series = make_series(config["series"], 160, seed=8)
    train_set = Windows(series[:, :128], config["window"], config["horizon"], stride=6)
    val_set = Windows(series[:, 96:], config["window"], config["horizon"], stride=9)
    model = Forecaster(config["hidden"], config["layers"], config["horizon"], config["dropout"])
    trainer = Trainer(model, config, train_set, val_set)
    trainer.fit(resume=sys.argv[2] if sys.argv[1:2] == ["--resume"] else None)


if __name__ == "__main__":
    main()
