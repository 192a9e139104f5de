"""Random molecule-like graphs whose target counts rings, branchings and hetero-atom neighbours."""
import numpy as np
import torch

N_ATOMS = 6


class Graph:
    __slots__ = ("atoms", "edges", "target")

    def __init__(self, atoms, edges, target):
        self.atoms, self.edges, self.target = atoms, edges, target


def draw(rng, lo, hi):
    n = int(rng.integers(lo, hi + 1))
    bonds = {(int(rng.integers(max(0, i - 4), i)), i) for i in range(1, n)}
    rings = 0
    for _ in range(int(rng.integers(0, 4))):
        a = int(rng.integers(0, n - 5))
        bond = (a, a + int(rng.integers(2, 6)))
        if bond not in bonds:
            bonds.add(bond)
            rings += 1
    atoms = rng.choice(N_ATOMS, n, p=[0.6, 0.12, 0.12, 0.08, 0.05, 0.03])
    pairs = np.array(sorted(bonds))
    degree = np.bincount(pairs.ravel(), minlength=n)
    hetero = np.sum((atoms[pairs[:, 0]] > 0) & (atoms[pairs[:, 1]] > 0))
    target = 1.0 * rings + 0.3 * np.sum(degree > 3) - 0.5 * hetero + 0.1 * rng.normal()
    edges = np.concatenate([pairs, pairs[:, ::-1]]).T.copy()
    return Graph(torch.from_numpy(atoms), torch.from_numpy(edges), float(target))


def draw_many(count, lo, hi, seed):
    rng = np.random.default_rng(seed)
    return [draw(rng, lo, hi) for _ in range(count)]


def collate(graphs):
    """One big disconnected graph."""
    atoms, edges, owner, offset = [], [], [], 0
    for i, g in enumerate(graphs):
        n = len(g.atoms)
        atoms.append(g.atoms)
        edges.append(g.edges + offset)
        owner.append(torch.full((n,), i))
        offset += n
    return (torch.cat(atoms), torch.cat(edges, dim=1), torch.cat(owner),
            torch.tensor([g.target for g in graphs]))
