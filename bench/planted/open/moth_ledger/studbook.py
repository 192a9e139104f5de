"""The studbook of a racing pigeon society: every bird knows its parents, its young and its rings."""

import numpy as np

STRAINS = ("Janssen", "Stichelbaut", "Gaby", "Busschaert", "Delbar", "Huyskens")


class Bird:
    def __init__(self, ring, strain, sire, dam):
        self.ring, self.strain, self.sire, self.dam = ring, strain, sire, dam
        self.young, self.prizes = [], {}
        for parent in (sire, dam):
            if parent is not None:
                parent.young.append(self)


class Studbook:
    def __init__(self, birds, traits, seed):
        rng = np.random.default_rng(seed)
        self.birds = []
        strain = rng.integers(len(STRAINS), size=birds).tolist()
        back = rng.integers(1, 4000, (birds, 2)).tolist()
        for i in range(birds):
            sire, dam = (self.birds[i - b] if b <= i else None for b in back[i])
            self.birds.append(Bird(f"BE{i:06d}", STRAINS[strain[i]], sire, dam))
        genes = rng.normal(0, 1, (birds, traits)).astype(np.float32)
        for lo in range(4000, birds, 4000):
            part = slice(lo, lo + 4000)
            kin = lo + np.arange(len(genes[part]))[:, None] - np.asarray(back[part])
            kin = np.clip(kin, 0, lo - 1)
            genes[part] = 0.6 * genes[kin].mean(1) + 0.8 * genes[part]
        self.genes = genes

    def best(self, speed, count=3):
        """Rings and strains of the fastest birds, with the number of young."""
        rows = np.argsort(-speed)[:count]
        return ", ".join(f"{self.birds[r].ring} {self.birds[r].strain} ({len(self.birds[r].young)})" for r in rows)

    def __len__(self):
        return len(self.birds)
