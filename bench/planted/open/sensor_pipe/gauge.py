"""Plays recorded gauges into a named pipe at the rate of the recorder."""

import os
import sys
import time

import numpy as np

FAST = os.environ.get("PLANTED_FIX") == "1"


def play(path, window=65536, interval=0.03):
    rng = np.random.default_rng(0)
    with open(path, "wb", buffering=0) as pipe:
        while True:
            block = rng.normal(size=window // 4).astype(np.float32)
            pipe.write(block.tobytes())
            if not FAST:
                time.sleep(interval)


if __name__ == "__main__":
    try:
        play(sys.argv[1])
    except (BrokenPipeError, KeyboardInterrupt):
        pass
