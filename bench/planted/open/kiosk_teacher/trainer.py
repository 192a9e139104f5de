import time

import torch
from torch.nn import functional as F


class Trainer:
    """Student and teacher; hooks are called after each step, in their order."""

    def __init__(self, student, teacher, optimizer, hooks, weight=2.0, sure=0.6):
        self.student, self.teacher, self.optimizer = student, teacher, optimizer
        self.hooks, self.weight, self.sure = hooks, weight, sure
        self.step, self.smooth, self.seconds, self.used = 0, None, 0.0, 0.0

    def losses(self, labelled, labels, weak, strong):
        with torch.no_grad():
            guess = self.teacher(weak).softmax(-1)
            sure, pseudo = guess.max(-1)
        logits = self.student(torch.cat([labelled, strong]))
        known = F.cross_entropy(logits[: len(labels)], labels)
        mask = (sure > self.sure).float()
        followed = (F.cross_entropy(logits[len(labels) :], pseudo, reduction="none") * mask).mean()
        return known, followed, mask.mean()

    def one(self, batch):
        known, followed, used = self.losses(*batch)
        loss = known + self.weight * followed
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        value = known.item()
        self.used = used.item()
        self.smooth = value if self.smooth is None else 0.98 * self.smooth + 0.02 * value
        for hook in self.hooks:
            hook(self)

    def run(self, source, steps):
        began = time.time()
        for batch in source:
            self.one(batch)
            if self.step >= steps:
                break
        self.seconds = time.time() - began
