"""Random alloys: positions, species, neighbour lists and a made-up formation energy."""

import numpy as np
import torch
from torch.utils.data import Dataset


def neighbour_list(positions: np.ndarray, k: int):
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    near = np.argsort(distance, axis=1)[:, :k]
    source = np.repeat(np.arange(len(positions)), k)
    return np.stack([source, near.reshape(-1)]), distance[source, near.reshape(-1)]


def smear(distance: np.ndarray, centres: int) -> np.ndarray:
    grid = np.linspace(0.0, 4.0, centres)
    return np.exp(-((distance[:, None] - grid) ** 2) / 0.18)


class Crystals(Dataset):
    def __init__(self, options, seed: int):
        rng = np.random.default_rng(seed)
        o = options.crystals
        mixing = rng.normal(size=(6, 6))
        mixing = mixing + mixing.T
        self.items = []
        for _ in range(o.count):
            n = int(rng.integers(o.atoms_low, o.atoms_high))
            positions = rng.uniform(0, 5.0, size=(n, 3))
            species = rng.integers(0, 6, size=n)
            edges, distance = neighbour_list(positions, o.neighbours)
            energy = (mixing[species[edges[0]], species[edges[1]]] * np.exp(-distance)).mean() * 3
            self.items.append(
                {
                    "species": torch.from_numpy(species),
                    "edges": torch.from_numpy(edges),
                    "smeared": torch.from_numpy(smear(distance, o.centres).astype(np.float32)),
                    "energy": float(energy),
                }
            )

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        item = dict(self.items[index])
        # neighbour order carries no meaning, so it is shuffled
        order = torch.randperm(item["edges"].shape[1], generator=torch.Generator().manual_seed(index))
        item["edges"] = item["edges"][:, order]
        item["smeared"] = item["smeared"][order]
        return item
