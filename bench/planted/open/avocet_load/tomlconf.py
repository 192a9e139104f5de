import os
import tomllib
from dataclasses import dataclass


@dataclass
class Data:
    meters: int
    days: int
    context: int
    ahead: int


@dataclass
class Net:
    width: int
    heads: int
    layers: int


@dataclass
class Train:
    seed: int
    batch: int
    lr: float
    steps: int
    evaluate_every: int
    keep_best: bool


@dataclass
class Conf:
    data: Data
    net: Net
    train: Train


def load(path="avocet.toml") -> Conf:
    with open(path, "rb") as file:
        raw = tomllib.load(file)
    conf = Conf(Data(**raw["data"]), Net(**raw["net"]), Train(**raw["train"]))
    conf.train.steps = int(os.environ.get("PLANTED_STEPS", conf.train.steps))
    return conf
