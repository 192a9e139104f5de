"""Where on the line does the net see each figure? Forced alignment, for the page overlay and as a check on the spacing."""

import gc
import os

FIX = os.environ.get("PLANTED_FIX")


def align(scores: list[list[float]], figures: list[int], blank: int) -> list[int]:
    """The best path through blank, figure, blank, figure, ... : the frame at which each figure starts."""
    states = [blank]
    for figure in figures:
        states += [figure, blank]
    best = [float("-inf")] * len(states)
    best[0] = 0.0
    back = []
    for row in scores:
        came, new = [], []
        for k, symbol in enumerate(states):
            stay, move = best[k], best[k - 1] if k else float("-inf")
            came.append(stay < move)
            new.append((move if stay < move else stay) + row[symbol])
        best = new
        back.append(came)
    k, starts = len(states) - 1, [0] * len(figures)
    for t in range(len(scores) - 1, -1, -1):
        if back[t][k]:
            if k % 2:
                starts[k // 2] = t
            k -= 1
    return starts


class Spacing:
    """How evenly the figures stand, as a running mean."""

    def __init__(self, blank: int):
        self.blank, self.unevenness, self.turn = blank, 0.0, 0
        self.every = 100 if FIX == "1" else 1

    def __call__(self, scores, value) -> None:
        self.turn += 1
        if FIX != "2" and self.turn % 30 == 0:
            gc.collect()
        if self.turn % self.every:
            return
        total = 0.0
        for rows, figures in zip(scores.tolist(), value.tolist()):
            starts = align(rows, figures, self.blank)
            gaps = [b - a for a, b in zip(starts, starts[1:])]
            mean = sum(gaps) / len(gaps)
            total += (sum((g - mean) ** 2 for g in gaps) / len(gaps)) ** 0.5
        self.unevenness = 0.95 * self.unevenness + 0.05 * total / len(value)
