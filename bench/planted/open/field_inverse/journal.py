import json
import os

FAST = os.environ.get("PLANTED_FIX") == "1"


class Journal:
    """Scalars and histograms as JSON lines, a small stand-in for a summary writer."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.file = open(os.path.join(folder, "events.jsonl"), "w")
        self.every = 100 if FAST else 1

    def add(self, step, loss, tensors):
        if step % self.every:
            return
        self.file.write(json.dumps({"step": step, "loss": loss.item()}) + "\n")
        for name, tensor in tensors.items():
            counts = tensor.detach().histc(64).tolist()
            values = [round(v, 6) for v in tensor.detach().flatten()[:8192].tolist()]
            self.file.write(json.dumps({"step": step, "name": name, "counts": counts, "values": values}) + "\n")
            self.file.flush()
