import json

import numpy as np


class Monitor:
    """Writes one JSON line a record: scalars and the distribution of every weight and gradient."""

    def __init__(self, path, bins, every):
        self.file, self.bins, self.every = open(path, "w"), bins, every

    def distribution(self, tensor):
        values = tensor.detach().numpy().ravel()
        counts, edges = np.histogram(values, bins=self.bins)
        low, middle, high = np.percentile(values, [5, 50, 95])
        return {"counts": counts.tolist(), "edges": edges.tolist(), "p": [float(low), float(middle), float(high)]}

    def record(self, update, scalars, model):
        if update % self.every:
            return
        row = {"update": update, **scalars}
        for name, parameter in model.named_parameters():
            row[f"weights/{name}"] = self.distribution(parameter)
            row[f"grads/{name}"] = self.distribution(parameter.grad)
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def close(self):
        self.file.close()
