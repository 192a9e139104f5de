"""Random molecule-like graphs; the target depends on atom kinds, degrees and neighbours."""

import numpy as np

KINDS = 9


def grow(rng, size):
    kinds = rng.integers(0, KINDS, size=size)
    left = [int(rng.integers(max(0, i - 6), i)) for i in range(1, size)]
    edges = [(i, j) for i, j in enumerate(left, start=1)]
    for _ in range(size // 6):
        a, b = rng.integers(0, size, size=2)
        if a != b:
            edges.append((int(a), int(b)))
    return kinds, np.array(edges, dtype=np.int64)


def library(count, seed):
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=KINDS)
    pair = rng.normal(size=(KINDS, KINDS)) * 0.5
    sizes = np.clip(np.exp(rng.normal(3.0, 0.42, size=count)), 6, 140).astype(int)
    sizes[rng.integers(0, count, size=3)] = (112, 126, 140)  # the few peptides in the set
    graphs = []
    for size in sizes:
        kinds, edges = grow(rng, int(size))
        y = weight[kinds].mean() + pair[kinds[edges[:, 0]], kinds[edges[:, 1]]].mean() + rng.normal(0, 0.05)
        graphs.append({"kinds": kinds, "edges": edges, "y": float(y)})
    return graphs
