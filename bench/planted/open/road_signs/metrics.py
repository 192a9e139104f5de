import os

import numpy as np


class Scores:
    """Accuracy, per-class F1 and expected calibration error of the training batches."""

    def __init__(self, classes, bins=15):
        self.classes, self.bins = classes, bins
        self.hits = np.zeros((classes, classes), dtype=np.int64)
        self.calibration = np.zeros((bins, 3))
        self.brier = 0.0
        self.rest = np.zeros((classes, bins), dtype=np.int64)

    def add(self, probs, target):
        probs, target = probs.numpy(), target.numpy()
        if os.environ.get("PLANTED_FIX") == "1":
            guess = probs.argmax(1)
            np.add.at(self.hits, (target, guess), 1)
            self.brier += float(((probs - np.eye(self.classes)[target]) ** 2).sum())
            which = np.minimum((probs * self.bins).astype(int), self.bins - 1)
            np.add.at(self.rest, (np.arange(self.classes)[None, :], which), 1)
            top = probs[np.arange(len(guess)), guess]
            b = np.minimum((top * self.bins).astype(int), self.bins - 1)
            np.add.at(self.calibration, b, np.stack([np.ones(len(b)), top, guess == target], 1))
            return
        for row, truth in zip(probs, target):
            best, best_p = 0, -1.0
            for c in range(self.classes):
                self.brier += float((row[c] - (c == truth)) ** 2)
                self.rest[c][min(int(row[c] * self.bins), self.bins - 1)] += 1
                if row[c] > best_p:
                    best, best_p = c, row[c]
            self.hits[truth][best] += 1
            b = min(int(best_p * self.bins), self.bins - 1)
            self.calibration[b][0] += 1
            self.calibration[b][1] += best_p
            self.calibration[b][2] += best == truth

    def f1(self):
        tp = np.diag(self.hits)
        return float(np.mean(2 * tp / np.maximum(self.hits.sum(0) + self.hits.sum(1), 1)))
