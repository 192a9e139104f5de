import gc
import json

import torch


class Balance:
    """How the rows spread over the experts, one line per step."""

    def __init__(self, path):
        self.file = open(path, "w")

    def __call__(self, step, mean, net, data):
        self.file.write(json.dumps({"step": step, "loss": mean, "load": [layer.load.tolist() for layer in net.layers]}) + "\n")
        self.file.flush()


class Exam:
    def __init__(self, every):
        self.every = every

    @torch.no_grad()
    def __call__(self, step, mean, net, data):
        if step % self.every == 0:
            with torch.autocast("cpu", torch.bfloat16):
                logits, _ = net(data.exam_x)
            right = sum(int(a == b) for a, b in zip(logits.argmax(-1), data.exam_y))
            print(f"step {step} loss {mean:.4f} exam {right / len(data.exam_y):.3f}", flush=True)


class Snapshot:
    def __init__(self, path, every):
        self.path, self.every = path, every

    def __call__(self, step, mean, net, data):
        if step % self.every == 0:
            torch.save(net.state_dict(), self.path)


class Sweep:
    def __init__(self, every):
        self.every = every

    def __call__(self, step, mean, net, data):
        if step % self.every == 0:
            gc.collect()
