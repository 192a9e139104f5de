import math
import os
import random

import numpy as np
import torch

CHANNELS, LENGTH = 6, 700
ARRAYS = os.environ.get("PLANTED_FIX") == "1"


class Steps(torch.utils.data.Dataset):
    """Walks as lists of samples, as the recorder's export gives them."""

    def __init__(self, walks=300):
        rng = random.Random(3)
        self.walks = []
        for w in range(walks):
            pace = rng.uniform(0.05, 0.3)
            trace = [[math.sin(pace * t + c) + rng.gauss(0, 0.2) for t in range(LENGTH)] for c in range(CHANNELS)]
            self.walks.append((np.array(trace) if ARRAYS else trace, pace))

    def __len__(self):
        return len(self.walks)

    def __getitem__(self, w):
        return self.walks[w]


class ToTensors:
    def __call__(self, rows):
        traces = [trace for trace, _pace in rows]
        paces = torch.tensor([pace for _trace, pace in rows])
        if ARRAYS:
            return torch.from_numpy(np.stack(traces)).float(), paces
        return torch.tensor(traces), paces
