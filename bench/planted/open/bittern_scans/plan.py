import os
from dataclasses import dataclass

import yaml


@dataclass
class Plan:
    seed: int
    volumes: int
    slices_per_epoch: int
    side: int
    batch_size: int
    workers: int
    prefetch: int
    width: int
    lr: float
    steps: int
    report_every: int
    check_every: int


def read_plan(path: str) -> Plan:
    with open(path) as file:
        plan = Plan(**yaml.safe_load(file))
    plan.steps = int(os.environ.get("PLANTED_STEPS", plan.steps))
    return plan
