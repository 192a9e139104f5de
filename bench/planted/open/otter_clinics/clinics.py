from dataclasses import dataclass

import torch


@dataclass
class Clinic:
    name: str
    train: tuple
    held: tuple

    def minibatch(self, size, generator):
        rows = torch.randint(0, len(self.train[0]), (size,), generator=generator)
        return self.train[0][rows], self.train[1][rows]


def found_clinics(number, features, patients, generator):
    rule = torch.randn(features, generator=generator)
    clinics = []
    for n in range(number):
        drift = 0.4 * torch.randn(features, generator=generator)
        x = torch.randn(patients, features, generator=generator) + drift
        y = ((x @ rule + x[:, 0] * x[:, 1]) > 0).float()
        cut = patients * 3 // 4
        clinics.append(Clinic(f"clinic-{n}", (x[:cut], y[:cut]), (x[cut:], y[cut:])))
    return clinics
