import os
import time
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from bells import strike
from pacing import Pacing
from ringer import Ringer


@dataclass
class Setup:
    strikes: int = 40000
    frames: int = 16
    bands: int = 16
    towers: int = 30
    width: int = 128
    batch: int = 64
    lr: float = 0.05
    steps: int = 250
    seed: int = 1510


class Course:
    def __init__(self, setup):
        torch.manual_seed(setup.seed)
        self.setup = setup
        self.generator = torch.Generator().manual_seed(setup.seed + 1)
        self.spectra, self.tower = strike(setup.strikes, setup.frames, setup.bands, setup.towers, self.generator)
        self.model = Ringer(setup.frames, setup.bands, setup.width, setup.towers)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=setup.lr, momentum=0.9)
        self.pacing = Pacing((10 * self.spectra[:, -1].std(dim=1)).tolist())

    def update(self):
        ids = torch.randint(0, self.setup.strikes, (self.setup.batch,), generator=self.generator)
        weights = self.pacing.weights(ids)
        each = cross_entropy(self.model(self.spectra[ids]), self.tower[ids], reduction="none")
        loss = (weights * each).sum() / weights.sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.pacing.observe(ids, each.detach())
        return loss.item()


def main():
    torch.set_num_threads(1)
    setup = Setup()
    course = Course(setup)
    steps = int(os.environ.get("PLANTED_STEPS", setup.steps))
    start = time.time()
    for step in range(steps):
        loss = course.update()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1}: loss {loss:.4f}, counted up to {course.pacing.limit:.4f}")
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
