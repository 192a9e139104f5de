import math
import os

import numpy as np


def absorption(strength):
    """Beer-Lambert like response of the scanner for one stain strength."""
    top = 1.0 - math.exp(-strength)

    def curve(value):
        return (1.0 - math.exp(-strength * value / 255.0)) / top

    return curve


def remap(image, curve):
    if os.environ.get("PLANTED_FIX") == "1":
        return np.array([curve(v) for v in range(256)], dtype=np.float32)[image]
    return np.vectorize(curve, otypes=[np.float32])(image)
