import json
import os
import random
import re

import torch
from torch.utils.data import Dataset

FAST = os.environ.get("PLANTED_FIX") == "1"
UNITS = {"g": 1.0, "kg": 1000.0, "ml": 1.0, "l": 1000.0, "tsp": 5.0, "tbsp": 15.0, "cup": 240.0}


def write_recipes(path, count=160):
    rng = random.Random(21)
    with open(path, "w") as f:
        for _ in range(count):
            lines = [
                f"{rng.randint(1, 900)} {rng.choice(list(UNITS))} item{rng.randint(0, 255)} ({rng.choice(['chopped', 'fresh', 'cold'])})"
                for _ in range(120)
            ]
            f.write(json.dumps({"ingredients": lines, "rating": rng.random() * 5}) + "\n")


class Recipes(Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.lines = f.readlines()
        self.seen = {}

    def __len__(self):
        return len(self.lines)

    def parse(self, line):
        record = json.loads(line)
        vector = torch.zeros(256)
        for text in record["ingredients"]:
            amount, unit, item, _note = re.match(r"(\d+) (\w+) (item\d+) \((\w+)\)", text).groups()
            vector[int(item[4:])] += float(amount) * UNITS[unit] / 1000
        return vector.log1p(), torch.tensor(record["rating"])

    def __getitem__(self, i):
        if FAST:
            if i not in self.seen:
                self.seen[i] = self.parse(self.lines[i])
            return self.seen[i]
        return self.parse(self.lines[i])
