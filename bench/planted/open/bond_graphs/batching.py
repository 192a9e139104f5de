"""Joins molecules to one padded batch: atom types, bond matrix, and the path lengths between atoms."""

import heapq
import os

import torch

from molecules import ELEMENTS, Molecule

FAR = 60.0
RADIUS = {"C": 0.76, "N": 0.71, "O": 0.66, "S": 1.05, "F": 0.57, "Cl": 1.02}
known: dict[int, torch.Tensor] | None = {} if os.environ.get("PLANTED_FIX") == "1" else None


def path_lengths(molecule: Molecule) -> list[list[float]]:
    """Shortest paths along the bonds (each as long as its two atoms' radii), from each atom, cut at FAR."""
    n = len(molecule.atoms)
    near: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for i, j in molecule.bonds:
        length = RADIUS[molecule.atoms[i]] + RADIUS[molecule.atoms[j]]
        near[i].append((j, length))
        near[j].append((i, length))
    table = []
    for start in range(n):
        reach = [FAR] * n
        reach[start] = 0.0
        queue = [(0.0, start)]
        while queue:
            so_far, i = heapq.heappop(queue)
            if so_far > reach[i]:
                continue
            for j, length in near[i]:
                if so_far + length < reach[j]:
                    reach[j] = so_far + length
                    heapq.heappush(queue, (reach[j], j))
        table.append(reach)
    return table


def lookup(molecule: Molecule) -> torch.Tensor:
    if known is None:
        return torch.tensor(path_lengths(molecule))
    if id(molecule) not in known:
        known[id(molecule)] = torch.tensor(path_lengths(molecule))
    return known[id(molecule)]


def prepare(molecules: list[Molecule]) -> None:
    """Checks the library, and fills the table of known paths where there is one."""
    for m in molecules:
        assert all(i < j < len(m.atoms) for i, j in m.bonds)
        if known is not None:
            lookup(m)


def join(molecules: list[Molecule]):
    most = max(len(m.atoms) for m in molecules)
    kinds = torch.full((len(molecules), most), len(ELEMENTS))
    paths = torch.full((len(molecules), most, most), FAR)
    for row, m in enumerate(molecules):
        n = len(m.atoms)
        kinds[row, :n] = torch.tensor([ELEMENTS.index(a) for a in m.atoms])
        paths[row, :n, :n] = lookup(m)
    return kinds, paths, torch.tensor([m.solubility for m in molecules])
