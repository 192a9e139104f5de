import functools
import os

import torch


class Numerics:
    def __init__(self, strict, clip):
        self.strict = strict and os.environ.get("PLANTED_FIX") != "1"
        self.clip = clip

    def checked(self, method):
        """Runs one phase under the numerics policy of the recipe."""

        @functools.wraps(method)
        def inner(*args, **kwargs):
            with torch.autograd.set_detect_anomaly(self.strict):
                return method(*args, **kwargs)

        return inner

    def limit(self, parameters):
        torch.nn.utils.clip_grad_norm_(parameters, self.clip)
