"""Currents in a fjord by tide, wind and river; readings come as packed text lines from the buoys."""

import os
import random

import torch

FIX = os.environ.get("PLANTED_FIX")


def checksum(body):
    value = 0
    for c in body:
        value ^= ord(c)
    return value


def readings(count, seed=15):
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        tide, wind, river, depth = rng.uniform(-1, 1), rng.gauss(0, 1), rng.expovariate(1), rng.random()
        east = 0.8 * tide * (1 - depth) + 0.3 * wind * (depth < 0.3) + 0.05 * rng.gauss(0, 1)
        north = 0.4 * river * (1 - depth) ** 2 - 0.2 * tide * depth + 0.05 * rng.gauss(0, 1)
        body = f"{tide:.4f},{wind:.4f},{river:.4f},{depth:.4f};{east:.4f},{north:.4f}"
        rows.append(f"${body}*{checksum(body):02x}")
    return rows


class Receiver:
    def __init__(self, rows, batch, seed=1):
        self.rows, self.batch, self.rng = rows, batch, random.Random(seed)
        self.read = [self.unpack(row) for row in rows] if FIX == "2" else None

    @staticmethod
    def unpack(row):
        body, check = row[1:].split("*")
        if checksum(body) != int(check, 16):
            raise ValueError(f"damaged reading {row!r}")
        given, found = body.split(";")
        return [float(v) for v in given.split(",")], [float(v) for v in found.split(",")]

    def get_batch(self):
        picks = [self.rng.randrange(len(self.rows)) for _ in range(self.batch)]
        pairs = [self.read[i] if self.read else self.unpack(self.rows[i]) for i in picks]
        return torch.tensor([p[0] for p in pairs]), torch.tensor([p[1] for p in pairs])
