"""Frames from the folder, in shuffled batches, ahead of the training in a thread of its own."""

import contextlib
import os
import queue
import threading
import time

import numpy as np
import torch

from camera import SIDE

LATEST = 30.0  # the camera's buffer is written out after so many seconds at the latest


def marks(path):
    seen = os.stat(path)
    return seen.st_size, seen.st_mtime_ns


def complete(path):
    """False for a frame that the camera has not written to its end."""
    before = marks(path)
    if os.environ.get("PLANTED_FIX") == "1":
        if time.time() - before[1] / 1e9 > LATEST:
            return before[0] == SIDE * SIDE
    time.sleep(0.004)
    return before == marks(path) and before[0] == SIDE * SIDE


def frame(path):
    return np.fromfile(path, np.uint8).reshape(1, SIDE, SIDE)


class Spool:
    def __init__(self, folder, batch, seed, ahead=4):
        self.folder, self.batch, self.rng = folder, batch, np.random.default_rng(seed)
        self.ready, self.closed = queue.Queue(ahead), threading.Event()
        self.thread = threading.Thread(target=self.wind, daemon=True)
        self.thread.start()

    def wind(self):
        while not self.closed.is_set():
            paths = sorted(os.scandir(self.folder), key=lambda entry: entry.name)
            self.rng.shuffle(paths)
            whole = (frame(p.path) for p in paths if complete(p.path))
            while len(rows := [f for f, _ in zip(whole, range(self.batch))]) == self.batch:
                if self.closed.is_set():
                    return
                self.ready.put(torch.from_numpy(np.stack(rows)).float() / 127.5 - 1)

    def __iter__(self):
        while True:
            yield self.ready.get()

    def close(self):
        self.closed.set()
        while self.thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self.ready.get(timeout=0.05)
