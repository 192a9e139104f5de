"""The cadastre's attribute service: id in, attributes out. A stand-in for the county's server, same protocol."""

import multiprocessing as mp
import time
from multiprocessing.connection import Client, Listener

import numpy as np

ADDRESS_SEED = 77
ROUND_TRIP = 0.0008  # s, as measured from the office network
COLUMNS = 24


def table(n):
    rng = np.random.default_rng(ADDRESS_SEED)
    return rng.normal(size=(n, COLUMNS)).astype(np.float32)


def serve(address, n):
    rows = table(n)
    with Listener(address, "AF_UNIX") as listener, listener.accept() as link:
        while True:
            try:
                ids = link.recv()
            except EOFError:
                return
            time.sleep(ROUND_TRIP)
            link.send(rows[ids])


class Cadastre:
    def __init__(self, address, n):
        self.process = mp.get_context("fork").Process(target=serve, args=(address, n), daemon=True)
        self.process.start()
        for _ in range(400):
            try:
                self.link = Client(address, "AF_UNIX")
                break
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(0.02)

    def attributes(self, ids):
        self.link.send(ids)
        return self.link.recv()

    def close(self):
        self.link.close()
        self.process.join(timeout=5)
