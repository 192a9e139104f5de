"""A feature service in a process of its own, spoken to over a pipe."""

import multiprocessing as mp
import os
import time

import numpy as np

LATENCY = 0.0022
BULK = os.environ.get("PLANTED_FIX") == "1"


def _serve(conn, other, customers, width):
    other.close()
    table = np.random.default_rng(3).normal(size=(customers, width)).astype(np.float32)
    while True:
        try:
            wanted = conn.recv()
        except EOFError:
            return
        time.sleep(LATENCY)
        conn.send(table[wanted])


class FeatureService:
    def __init__(self, customers, width):
        here, there = mp.Pipe()
        self.process = mp.get_context("fork").Process(target=_serve, args=(there, here, customers, width), daemon=True)
        self.process.start()
        there.close()
        self.conn = here
        self.known = self.ask(np.arange(customers)) if BULK else None

    def ask(self, keys):
        self.conn.send(keys)
        return self.conn.recv()

    def row(self, key):
        return self.ask(key) if self.known is None else self.known[key]

    def close(self):
        self.conn.close()
        self.process.join()
