import json
import os
from pathlib import Path


class Conf(dict):
    __getattr__ = dict.__getitem__

    @property
    def keep_loader(self):
        return self.get("keep_loader_alive", os.environ.get("PLANTED_FIX") == "1")

    @property
    def step_limit(self):
        limit = os.environ.get("PLANTED_STEPS")
        return int(limit) if limit else None


def load(path="conf.json"):
    return Conf(json.loads(Path(path).read_text()))
