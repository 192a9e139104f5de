"""Works on coefficients: levels -> harmonics -> change -> levels."""

import torch
from torch import nn

from lagoon.sphere import harmonics, projector


class Forecaster(nn.Module):
    def __init__(self, config):
        super().__init__()
        count = (config.degree + 1) ** 2
        self.enter = nn.Linear(count, config.hidden)
        self.turn = nn.Linear(config.hidden, config.hidden)
        self.leave = nn.Linear(config.hidden, count)

    def forward(self, levels, basis, fit):
        coefficients = levels @ fit.T
        hidden = torch.tanh(self.enter(coefficients))
        hidden = hidden + torch.tanh(self.turn(hidden))
        return (coefficients + self.leave(hidden)) @ basis.T


class Globe:
    """Gives the basis at the gauges and the fit to it."""

    def __init__(self, config, gauges):
        self.config, self.gauges = config, gauges
        self.held = None

    def operators(self):
        if self.held is not None:
            return self.held
        basis = harmonics(self.config.degree, self.gauges.longitude, self.gauges.latitude)
        fit = projector(basis, self.config.ridge)
        if self.config.hold_basis:
            self.held = basis, fit
        return basis, fit
