"""Makes a program really slower: after each piece of work, EXTRA times its CPU time again (EXTRA from the environment, default 0)."""

import os
import time

EXTRA = float(os.environ.get("EXTRA", "0"))


class Burn:
    """`with Burn():` around a piece of work of one thread."""

    def __enter__(self):
        self.began = time.thread_time_ns()

    def __exit__(self, *_):
        if EXTRA > 0:
            until = time.thread_time_ns() + EXTRA * (time.thread_time_ns() - self.began)
            while time.thread_time_ns() < until:
                pass
