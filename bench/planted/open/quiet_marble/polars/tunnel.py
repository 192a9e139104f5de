"""A stand-in for the wind tunnel: lift, drag and moment of made-up sections."""

import torch


def measure(points: int, shape: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Section parameters, angle, log Reynolds number and Mach number [point, shape + 3]; three coefficients [point, 3]."""
    generator = torch.Generator().manual_seed(seed)
    sections = torch.rand(points, shape + 3, generator=generator) * 2 - 1
    camber, thick = sections[:, : shape // 2].mean(1), sections[:, shape // 2 : shape].mean(1)
    angle, reynolds, mach = sections[:, shape:].unbind(1)
    lift = torch.tanh(2 * angle + 3 * camber) / (1.3 - mach.square()).sqrt()
    drag = 0.05 + 0.3 * lift.square() + 0.1 * torch.sigmoid(8 * (angle - 0.6 - thick)) - 0.02 * reynolds
    moment = -0.25 * camber + 0.1 * torch.sin(3 * angle) * mach
    answers = torch.stack([lift, drag, moment], dim=1)
    answers = (answers - answers.mean(0)) / answers.std(0)
    return sections, answers + 0.02 * torch.randn(points, 3, generator=generator)


class Resamples:
    """For each member of the ensemble its own resampled points."""

    def __init__(self, sections: torch.Tensor, answers: torch.Tensor, members: int, seed: int) -> None:
        self.sections, self.answers = sections, answers
        self.generator = torch.Generator().manual_seed(seed)
        self.own = torch.randint(len(sections), (members, len(sections)), generator=self.generator)

    def draw(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows = self.own[:, torch.randint(self.own.shape[1], (size,), generator=self.generator)]
        return self.sections[rows], self.answers[rows]
