import os
import time

import torch

from .offers import offers
from .optim import Adagrad
from .ranker import Ranker

torch.set_num_threads(1)


class Calibration:
    """Predicted against seen acceptance rate over a window; a drift of the two is the first sign of trouble."""

    def __init__(self, decay=0.98):
        self.decay, self.said, self.seen = decay, None, None

    def add(self, logits, taken):
        said, seen = logits.sigmoid().mean().item(), taken.mean().item()
        self.said = said if self.said is None else self.decay * self.said + (1 - self.decay) * said
        self.seen = seen if self.seen is None else self.decay * self.seen + (1 - self.decay) * seen

    def __str__(self):
        return f"said {self.said:.4f} seen {self.seen:.4f} ratio {self.said / max(self.seen, 1e-6):.3f}"


def fit(args):
    torch.manual_seed(21)
    steps = int(os.environ.get("PLANTED_STEPS", 1500))
    ranker = Ranker()
    optimizer = Adagrad(ranker.parameters(), lr=args.rate)
    calibration = Calibration()
    smooth, began = None, time.time()
    for step, (ids, dense, taken) in enumerate(offers(args.batch, steps), 1):
        logits = ranker(ids, dense)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, taken)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smooth = loss.item() if smooth is None else 0.97 * smooth + 0.03 * loss.item()
        calibration.add(logits.detach(), taken)
        if not args.quiet and step % 10 == 0:
            print(f"{step}/{steps} loss {smooth:.4f} {calibration}", flush=True)
    print(f"{steps} steps in {time.time() - began:.2f}s, loss {smooth:.4f}")
