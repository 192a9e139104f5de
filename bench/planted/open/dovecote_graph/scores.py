"""Running scores: a confusion table, from which recall and balanced accuracy are read."""

import os

import torch


class Confusion:
    def __init__(self, classes):
        self.classes = classes
        self.table = torch.zeros(classes, classes, dtype=torch.long)

    def update(self, truth, guess):
        if os.environ.get("PLANTED_FIX") == "1":
            flat = torch.bincount(truth * self.classes + guess, minlength=self.classes**2)
            self.table += flat.view(self.classes, self.classes)
            return
        for one, other in zip(truth, guess):
            self.table[one.item(), other.item()] += 1

    def recall(self):
        return self.table.diagonal() / self.table.sum(1).clamp(min=1)


class ScoreBoard:
    def __init__(self, classes):
        self.classes = classes
        self.reset()

    def reset(self):
        self.confusion = Confusion(self.classes)
        self.confident = 0.0
        self.seen = 0

    def attach(self, bus):
        bus.on("batch", self.on_batch)

    def on_batch(self, step, truth, scores):
        self.confusion.update(truth, scores.argmax(-1))
        self.confident += scores.softmax(-1).amax(-1).mean().item()
        self.seen += 1

    def line(self):
        recall = self.confusion.recall()
        worst = int(recall.argmin())
        return f"balanced {recall.mean():.3f} worst loft {worst} ({recall[worst]:.3f}) confidence {self.confident / max(self.seen, 1):.3f}"
