"""Synthetic click log: data/clicks.csv with 8 numerical and 14 categorical columns."""
import os

import numpy as np
import pandas as pd

N = 24000
CARD = [24, 7, 60000, 12000, 400, 35, 9000, 3, 25000, 90, 1500, 5, 40000, 220]


def main():
    rng = np.random.default_rng(7)
    os.makedirs("data", exist_ok=True)
    cols = {}
    logit = np.full(N, -1.3)
    for i in range(8):
        x = rng.lognormal(1.0, 1.2, N)
        x[rng.random(N) < 0.15] = np.nan
        cols[f"I{i + 1}"] = x.round(2)
        logit += 0.15 * rng.normal() * np.nan_to_num(np.log1p(x))
    for i, c in enumerate(CARD):
        v = np.minimum((rng.pareto(0.9, N) * max(c / 60, 1)).astype(np.int64), c - 1)
        effect = rng.normal(0, 0.5, c)
        logit += effect[v]
        keys = np.array([f"{(k * 2654435761 + i * 97) % 2**32:08x}" for k in range(c)])
        cols[f"C{i + 1}"] = keys[v]
    df = pd.DataFrame(cols)
    df.insert(0, "label", (rng.random(N) < 1 / (1 + np.exp(-logit))).astype(int))
    df.to_csv("data/clicks.csv", index=False)


if __name__ == "__main__":
    main()
