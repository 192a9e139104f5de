"""The notebook: each step's loss, and how the weights of the net are spread."""

import json
import os

EVERY = 50 if os.environ.get("PLANTED_FIX") == "2" else 1


class Notebook:
    def __init__(self, path):
        self.file = open(path, "w")

    def write(self, step, mean, net):
        if step % EVERY:
            return
        row = {"step": step, "loss": round(mean, 5), "weights": {}}
        for name, p in net.named_parameters():
            low, high = p.detach().aminmax()
            counts = p.detach().histc(40).int().tolist()
            row["weights"][name] = {"low": low.item(), "high": high.item(), "counts": counts, "first": p.detach().flatten()[:160].tolist()}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
