"""Scores of a land cover map that are kept during the training."""

import os

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Score:
    name = "score"

    def add(self, scores: torch.Tensor, truth: torch.Tensor) -> None:
        raise NotImplementedError

    def value(self) -> float:
        raise NotImplementedError

    def reset(self) -> None: ...


class PixelAccuracy(Score):
    name = "accuracy"

    def __init__(self) -> None:
        self.right = self.total = 0

    def add(self, scores, truth) -> None:
        self.right += int((scores.argmax(1) == truth).sum())
        self.total += truth.numel()

    def value(self) -> float:
        return self.right / max(self.total, 1)

    def reset(self) -> None:
        self.right = self.total = 0


class CoverTable(Score):
    """How often each cover was taken for each other; its value is the mean intersection over union."""

    name = "iou"

    def __init__(self, covers: int, void: int = 255) -> None:
        self.covers, self.void = covers, void
        self.reset()

    def add(self, scores, truth) -> None:
        certainty, found = scores.softmax(1).max(1)
        if FIXED:
            valid = truth != self.void
            real, guess = truth[valid], found[valid]
            flat = torch.bincount(real * self.covers + guess, minlength=self.covers**2).tolist()
            doubt = torch.bincount(guess, 1.0 - certainty[valid], minlength=self.covers).tolist()
            for number, row in enumerate(self.counts):
                self.doubt[number] += doubt[number]
                for other in range(self.covers):
                    row[other] += flat[number * self.covers + other]
            return
        pixels = (truth.flatten().numpy(), found.flatten().numpy(), certainty.flatten().numpy())
        for real, guess, sure in zip(*pixels, strict=True):
            if real != self.void:
                self.counts[real][guess] += 1
                self.doubt[guess] += 1.0 - sure

    def doubts(self) -> list[float]:
        """The mean doubt about each cover that was found."""
        return [doubt / max(sum(row[cover] for row in self.counts), 1) for cover, doubt in enumerate(self.doubt)]

    def value(self) -> float:
        shares = []
        for cover in range(self.covers):
            both = self.counts[cover][cover]
            either = sum(self.counts[cover]) + sum(row[cover] for row in self.counts) - both
            if either:
                shares.append(both / either)
        return sum(shares) / max(len(shares), 1)

    def reset(self) -> None:
        self.doubt = [0.0] * self.covers
        self.counts = [[0] * self.covers for _ in range(self.covers)]


class ScoreBoard:
    def __init__(self, *scores: Score) -> None:
        self.scores = scores

    def add(self, scores: torch.Tensor, truth: torch.Tensor) -> None:
        for score in self.scores:
            score.add(scores, truth)

    def values(self) -> dict[str, float]:
        return {score.name: score.value() for score in self.scores}

    def reset(self) -> None:
        for score in self.scores:
            score.reset()
