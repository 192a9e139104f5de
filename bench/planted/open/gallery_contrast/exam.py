"""How often a caption finds its own picture among the first k, over pairs that were held out."""

import torch


class Retrieval:
    def __init__(self, pictures, captions, ranks=(1, 5, 10)):
        self.pictures, self.captions, self.ranks = pictures, captions, ranks

    @torch.no_grad()
    def __call__(self, pair):
        pair.eval()
        with torch.autocast("cpu", torch.bfloat16):
            a, b = pair(self.pictures, self.captions)
        pair.train()
        scores = b.float() @ a.float().T
        own = scores.diagonal()[:, None]
        place = (scores > own).sum(1)
        return {k: (place < k).float().mean().item() for k in self.ranks}


class Cosine:
    """Warm-up, then half a cosine; by hand because the run may be cut short."""

    def __init__(self, optimizer, top, warm, total):
        self.optimizer, self.top, self.warm, self.total = optimizer, top, warm, total

    def at(self, step):
        if step < self.warm:
            return self.top * (step + 1) / self.warm
        done = min(1.0, (step - self.warm) / max(1, self.total - self.warm))
        return self.top * 0.5 * (1 + torch.cos(torch.tensor(done * torch.pi)).item())

    def set(self, step):
        for group in self.optimizer.param_groups:
            group["lr"] = self.at(step)
