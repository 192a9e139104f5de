"""Quantiles of tomorrow's load of each meter."""

import sys

import torch

from forecaster import Forecaster
from meters import Meters
from tomlconf import load
from trainer import Trainer


def main(argv):
    conf = load(*argv[1:2])
    torch.manual_seed(conf.train.seed)
    meters = Meters(conf.data, conf.train.seed)
    Trainer(Forecaster(conf), meters, conf.train).fit()


if __name__ == "__main__":
    main(sys.argv)
