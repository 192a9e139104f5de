import os

import torch

TOPK = os.environ.get("PLANTED_FIX") == "1"


class Pruner:
    """Keeps the weights sparse while they are learnt."""

    def __init__(self, layers, share):
        self.layers, self.share = layers, share

    @torch.no_grad()
    def apply(self):
        for layer in self.layers:
            flat = layer.weight.view(-1)
            drop = int(self.share * flat.numel())
            if TOPK:
                flat[flat.abs().topk(drop, largest=False).indices] = 0.0
            else:
                ranked = sorted(range(flat.numel()), key=flat.abs().tolist().__getitem__)
                flat[torch.tensor(ranked[:drop])] = 0.0
