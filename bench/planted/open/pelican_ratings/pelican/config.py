import configparser
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    users: int
    items: int
    interactions: int
    seed: int
    width: int
    hidden: int
    batch: int
    lr: float
    steps: int
    snapshot_every: int
    report_every: int
    ranking_every: int
    ranking_users: int


def read(path="pelican.ini") -> Config:
    parser = configparser.ConfigParser()
    parser.read(path)
    flat = {key: value for section in parser.sections() for key, value in parser[section].items()}
    if os.environ.get("PLANTED_FIX") == "1":
        flat["ranking_every"] = "600"
    flat["steps"] = os.environ.get("PLANTED_STEPS", flat["steps"])
    return Config(**{key: float(value) if key == "lr" else int(value) for key, value in flat.items()})
