import os
from dataclasses import dataclass

import yaml


@dataclass(frozen=True)
class Settings:
    seed: int
    window: int
    genomes: int
    genome_length: int
    motifs: int
    width: int
    heads: int
    layers: int
    batch: int
    lr: float
    mask_rate: float
    steps: int
    report: int
    keep_every: int
    mixing: str = "explicit"


def read(path="osier.yaml") -> Settings:
    with open(path) as file:
        values = yaml.safe_load(file)
    if os.environ.get("PLANTED_FIX") == "1":
        values["mixing"] = "library"
    values["steps"] = int(os.environ.get("PLANTED_STEPS", values["steps"]))
    return Settings(**values)
