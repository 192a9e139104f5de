import os

from transformers import TrainerCallback

WHICH = os.environ.get("PLANTED_FIX")


def drift(old, new):
    """Largest change of any weight."""
    worst = 0.0
    for before, after in zip(old, new):
        worst = max(worst, abs(after - before))
    return worst


class WatchDrift(TrainerCallback):
    def __init__(self):
        self.last = None
        self.history = []

    def on_step_end(self, args, state, control, model=None, **kwargs):
        weight = model.ships[0].weight
        if WHICH == "1":
            now = weight.detach().clone()
            self.history.append(0.0 if self.last is None else float((now - self.last).abs().max()))
        else:
            now = weight.flatten().tolist()
            self.history.append(drift(self.last or now, now))
        self.last = now
