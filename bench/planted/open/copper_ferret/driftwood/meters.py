import os

import numpy as np
import torch
from sklearn.metrics import log_loss, roc_auc_score

FIXED = os.environ.get("PLANTED_FIX") == "1"


class ClickMeter:
    """Keeps what the model said about the clicks of the running epoch."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.scores, self.clicks = [], []
        self.latest = {}

    @torch.no_grad()
    def update(self, logits, clicks):
        self.scores.append(torch.sigmoid(logits).numpy())
        self.clicks.append(clicks.numpy())
        if not FIXED:
            self.latest = self.compute()

    def compute(self):
        s, c = np.concatenate(self.scores), np.concatenate(self.clicks)
        if c.min() == c.max():
            return {}
        return {"auc": roc_auc_score(c, s), "logloss": log_loss(c, s), "ctr": float(s.mean() / c.mean())}

    def summary(self):
        return self.compute() if FIXED else self.latest
