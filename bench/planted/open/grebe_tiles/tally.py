"""Running numbers for the log."""

from collections import deque


class Tally:
    def __init__(self, last: int = 100):
        self.losses, self.hits, self.seen = deque(maxlen=last), 0, 0

    def add(self, loss: float, hits: int, count: int):
        self.losses.append(loss)
        self.hits += hits
        self.seen += count

    def line(self, step: int) -> str:
        mean = sum(self.losses) / len(self.losses)
        text = f"step {step} loss {mean:.4f} hits {self.hits / self.seen:.3f}"
        self.hits = self.seen = 0
        return text
