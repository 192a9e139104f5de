import os

import torch

FAST = os.environ.get("PLANTED_FIX") == "1"


class Confusion:
    def __init__(self, classes):
        self.classes = classes
        self.matrix = [[0] * classes for _ in range(classes)]

    def update(self, logits, target):
        predicted = logits.argmax(1).flatten()
        if FAST:
            flat = torch.bincount(target.flatten() * self.classes + predicted, minlength=self.classes**2)
            for k, count in enumerate(flat.tolist()):
                self.matrix[k // self.classes][k % self.classes] += count
            return
        truths, guesses = target.flatten().tolist(), predicted.tolist()
        for c in range(self.classes):
            for truth, guess in zip(truths, guesses, strict=True):
                if truth == c:
                    self.matrix[c][guess] += 1

    def mean_iou(self):
        values = []
        for c in range(self.classes):
            hit = self.matrix[c][c]
            either = sum(self.matrix[c]) + sum(row[c] for row in self.matrix) - hit
            values.append(hit / max(either, 1))
        return sum(values) / len(values)
