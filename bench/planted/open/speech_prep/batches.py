import json
import os

import torch

FIX = os.environ.get("PLANTED_FIX")


def overlap_add(frames):
    """Joins frames of 64 with hops of 16."""
    if FIX == "1":
        count = len(frames)
        out = torch.zeros(16 * (count - 1) + 64)
        for k in range(4):
            part = frames[:, 16 * k : 16 * k + 16].flatten()
            out[16 * k : 16 * k + len(part)] += part
        return out
    out = [0.0] * (16 * (len(frames) - 1) + 64)
    for k, frame in enumerate(frames.tolist()):
        for j, value in enumerate(frame):
            out[16 * k + j] += value
    return torch.tensor(out)


def collate(rows):
    waves = [overlap_add(frames) for frames, _ in rows]
    longest = max(len(w) for w in waves)
    return torch.stack([torch.nn.functional.pad(w, (0, longest - len(w))) for w in waves]), torch.stack([y for _, y in rows])


class EventFile:
    def __init__(self, path):
        self.file = open(path, "w")

    def write(self, step, loss, model):
        if FIX == "2":
            return
        sizes = {n: [round(v, 4) for v in p.grad.flatten()[:1500].tolist()] for n, p in model.named_parameters()}
        self.file.write(json.dumps({"step": step, "loss": loss.item(), "gradients": sizes}) + "\n")
        self.file.flush()
