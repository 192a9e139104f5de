"""A small reader of scripts learns from a larger one that stays as it is."""

import collections
import os
import time

import torch
from torch.nn import functional as F

from house import Housekeeper
from pages import Strips
from reader import Reader


class Distil:
    def __init__(self, teacher, heat=2.0, trust=0.7):
        self.teacher, self.heat, self.trust = teacher.eval().requires_grad_(False), heat, trust

    def __call__(self, logits, ink, hand):
        with torch.no_grad():
            soft = (self.teacher(ink) / self.heat).softmax(1)
        match = F.kl_div((logits / self.heat).log_softmax(1), soft, reduction="batchmean") * self.heat**2
        return self.trust * match + (1 - self.trust) * F.cross_entropy(logits, hand)


class Readings:
    """Which shelf marks were read wrongly of late."""

    def __init__(self):
        self.wrong = collections.Counter()
        self.recent = collections.deque(maxlen=64)

    def note(self, cards, guess):
        for card, g in zip(cards, guess.tolist()):
            ok = card["hand"]["name"] == g
            self.recent.append(ok)
            if not ok:
                self.wrong[card["shelf"]] += 1

    def line(self):
        return f"right {sum(self.recent) / len(self.recent):.2f}, hardest {self.wrong.most_common(1)}"


def main():
    torch.manual_seed(23)
    torch.set_num_threads(1)
    strips = Strips(2400, 1)
    student, teacher = Reader(48, 4, 2), Reader(64, 4, 2)
    lesson, readings, house = Distil(teacher), Readings(), Housekeeper()
    optimizer = torch.optim.AdamW(student.parameters(), 1e-3)
    steps, began = int(os.environ.get("PLANTED_STEPS", 2500)), time.perf_counter()
    for step, (ink, hand, cards) in enumerate(strips.shuffled(3), 1):
        logits = student(ink)
        loss = lesson(logits, ink, hand)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        readings.note(cards, logits.argmax(1))
        house.tidy(step)
        if step % 30 == 0:
            print(f"{step}: loss {loss.item():.4f}, {readings.line()}, peak {house.peak} KiB", flush=True)
        if step % 300 == 0:
            torch.save(student.state_dict(), "student.pt")
        if step == steps:
            break
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
