"""What happens around a step."""

import math
import os
import time

from strips import LETTERS

FIX = os.environ.get("PLANTED_FIX") == "1"
NOTHING, FLOOR = -math.inf, -400.0


class Callback:
    def on_step_end(self, trainer, step: int, scores, letters) -> None: ...

    def on_end(self, trainer) -> None: ...


class Console(Callback):
    """One line a step."""

    def __init__(self):
        self.begun = time.perf_counter()

    def on_step_end(self, trainer, step, scores, letters):
        rate = step / max(time.perf_counter() - self.begun, 1e-9)
        print(f"step {step:5d}  ctc {trainer.loss:.4f}  cer {trainer.cer:.3f}  {rate:.1f} steps/s", flush=True)


def join(a: float, b: float) -> float:
    """log(exp(a) + exp(b))"""
    high, low = (a, b) if a > b else (b, a)
    return high if low == NOTHING else high + math.log1p(math.exp(low - high))


def beam_search(columns: list, width: int) -> str:
    """Prefix search over log-probabilities: each prefix keeps how likely it ends in a blank and in its last letter."""
    beams = {(): (0.0, NOTHING)}
    for column in columns:
        grown: dict = {}
        for prefix, (blank, letter) in beams.items():
            both = join(blank, letter)
            old = grown.get(prefix, (NOTHING, NOTHING))
            stay = letter + column[prefix[-1]] if prefix else NOTHING
            grown[prefix] = (join(old[0], both + column[0]), join(old[1], stay))
            for index in range(1, len(column)):
                start = blank if prefix and prefix[-1] == index else both
                if start + column[index] > FLOOR:
                    longer = (*prefix, index)
                    old = grown.get(longer, (NOTHING, NOTHING))
                    grown[longer] = (old[0], join(old[1], start + column[index]))
        ranked = sorted(grown.items(), key=lambda item: -join(*item[1]))
        beams = dict(ranked[:width])
    return "".join(LETTERS[index - 1] for index in next(iter(beams)))


def distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, one in enumerate(a, start=1):
        corner, row[0] = row[0], i
        for j, other in enumerate(b, start=1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (one != other))
    return row[-1]


class CharacterErrors(Callback):
    """Running share of wrong characters in what the reader writes, on the first strips of the batch."""

    def __init__(self, every: int = 100 if FIX else 1, strips: int = 8, width: int = 4, momentum: float = 0.95):
        self.every, self.strips, self.width, self.momentum = every, strips, width, momentum

    def on_step_end(self, trainer, step, scores, letters):
        if step % self.every:
            return
        wrong = total = 0
        columns = scores[:, : self.strips].transpose(0, 1).tolist()
        for strip, truth in zip(columns, letters.tolist(), strict=False):
            text = "".join(LETTERS[index - 1] for index in truth)
            wrong += distance(beam_search(strip, self.width), text)
            total += len(text)
        trainer.cer = self.momentum * trainer.cer + (1 - self.momentum) * wrong / total


class KeepLast(Callback):
    def on_end(self, trainer):
        trainer.save("last.pt")
