"""Made-up molecules: rings and chains with a solubility that depends on what is bound to what."""

import random
from dataclasses import dataclass, field

ELEMENTS = ["C", "N", "O", "S", "F", "Cl"]
POLAR = {"N": 0.8, "O": 1.1, "S": 0.3, "F": -0.2, "Cl": -0.4, "C": -0.5}


@dataclass
class Molecule:
    atoms: list[str]
    bonds: list[tuple[int, int]] = field(default_factory=list)

    @property
    def solubility(self) -> float:
        own = sum(POLAR[a] for a in self.atoms) / len(self.atoms)
        near = sum(POLAR[self.atoms[i]] * POLAR[self.atoms[j]] for i, j in self.bonds) / max(1, len(self.bonds))
        return own + 0.7 * near


def grow(rng: random.Random) -> Molecule:
    size = rng.randint(24, 56)
    atoms = rng.choices(ELEMENTS, weights=[10, 3, 3, 1, 1, 1], k=size)
    bonds = [(rng.randint(max(0, i - 3), i - 1), i) for i in range(1, size)]
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(size - 5)
        bonds.append((i, i + 5))
    return Molecule(atoms, bonds)


def library(count: int, seed: int = 5) -> list[Molecule]:
    rng = random.Random(seed)
    return [grow(rng) for _ in range(count)]
