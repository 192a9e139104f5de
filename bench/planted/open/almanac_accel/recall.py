"""How well each crop is known, over the last updates; shown from time to time."""

import torch


class Recall:
    NAMES = ("wheat", "barley", "rape", "maize", "beet", "potato", "clover", "oats", "flax")

    def __init__(self, crops):
        self.seen, self.right = torch.zeros(crops), torch.zeros(crops)

    def add(self, logits, y):
        right = (logits.detach().argmax(-1) == y).float()
        self.seen.index_add_(0, y, torch.ones_like(right))
        self.right.index_add_(0, y, right)

    def worst(self):
        recall = self.right / self.seen.clamp(min=1)
        at = int(recall.argmin())
        self.seen.zero_()
        self.right.zero_()
        return f"worst {self.NAMES[at]} {recall[at]:.2f}"
