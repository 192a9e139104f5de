import json
import os

import torch

WHICH = os.environ.get("PLANTED_FIX")


class Journal:
    def __init__(self, path):
        self.file = open(path, "w")

    def note(self, step, loss, maps):
        entry = {"step": step, "loss": loss}
        if WHICH != "1":
            entry["maps"] = torch.round(maps, decimals=4).tolist()
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()
