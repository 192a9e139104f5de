from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class CitationGraph:
    x: torch.Tensor
    y: torch.Tensor
    edge_index: torch.Tensor
    train: torch.Tensor
    valid: torch.Tensor


def citation_graph(nodes, classes, features, degree, homophily, seed):
    """Stochastic block model with heavy-tailed in-degrees and noisy bag-of-words features."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, nodes)
    n_edges = int(nodes * degree / 2)
    src = rng.integers(0, nodes, n_edges)
    popularity = rng.pareto(2.5, nodes) + 0.2
    by_class = [np.flatnonzero(y == c) for c in range(classes)]
    dst = rng.choice(nodes, n_edges, p=popularity / popularity.sum())
    same = rng.random(n_edges) < homophily
    for c, members in enumerate(by_class):
        pick = np.flatnonzero(same & (y[src] == c))
        p = popularity[members]
        dst[pick] = rng.choice(members, len(pick), p=p / p.sum())
    topics = rng.random((classes, features)) < 0.12
    words = rng.random((nodes, features)) < np.where(topics[y], 0.16, 0.07)
    x = words / np.maximum(words.sum(1, keepdims=True), 1)

    order = rng.permutation(nodes)
    train = np.zeros(nodes, bool)
    train[order[: nodes // 10]] = True
    valid = np.zeros(nodes, bool)
    valid[order[nodes // 10: nodes // 3]] = True
    return CitationGraph(
        torch.from_numpy(x.astype(np.float32)),
        torch.from_numpy(y),
        torch.from_numpy(np.stack([src, dst])),
        torch.from_numpy(train),
        torch.from_numpy(valid),
    )
