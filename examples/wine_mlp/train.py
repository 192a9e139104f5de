"""Train a classifier on the wine data: python train.py --config config.yaml"""

import argparse
import random

import numpy as np
import torch
import yaml
from data import make_loaders
from model import TabularNet
from trainer import Trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.yaml")
    parser.add_argument("--epochs", type=int)
    args = parser.parse_args()

    with open(args.config) as file:
        config = yaml.safe_load(file)
    if args.epochs:
        config["train"]["epochs"] = args.epochs

    torch.set_num_threads(config["train"]["threads"])
    random.seed(config["seed"])
    np.random.seed(config["seed"])
    torch.manual_seed(config["seed"])

    train_loader, test_loader, features, classes = make_loaders(config["data"], config["seed"])
    model = TabularNet(features, classes, **config["model"])
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(train_loader)} steps per epoch")
    Trainer(config, model, train_loader, test_loader).fit()


if __name__ == "__main__":
    main()
