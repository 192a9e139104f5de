import json
import os
from types import SimpleNamespace


def load(path="dunlin.json"):
    with open(path) as file:
        conf = SimpleNamespace(**json.load(file))
    conf.rounds = int(os.environ.get("PLANTED_STEPS", conf.rounds))
    return conf
