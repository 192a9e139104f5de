import os
from types import SimpleNamespace

import yaml


def settings(path="conf.yaml"):
    with open(path) as file:
        values = yaml.safe_load(file)
    conf = SimpleNamespace(**values)
    conf.steps = int(os.environ.get("PLANTED_STEPS", conf.steps))
    conf.pad_to = "longest" if os.environ.get("PLANTED_FIX") == "1" else "max_length"
    return conf
