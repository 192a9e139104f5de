import os

import torch
import torch.nn.functional as F

FIXED = os.environ.get("PLANTED_FIX") == "1"


def blend(student, teacher, temperature, alpha):
    """Hinton-style objective; returns a closure over both nets."""

    def soft(a, b):
        return F.kl_div(F.log_softmax(a / temperature, -1), F.softmax(b / temperature, -1), reduction="batchmean")

    def objective(x, y):
        guess = student(x)
        if FIXED:
            with torch.no_grad():
                out = teacher(x)
            target = out
        else:
            target = teacher(x)
        hard = F.cross_entropy(guess, y)
        return alpha * temperature**2 * soft(guess, target) + (1 - alpha) * hard

    return objective
