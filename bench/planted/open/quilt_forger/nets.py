from torch import nn


def forger(noise, hidden, pixels):
    return nn.Sequential(
        nn.Linear(noise, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, pixels),
        nn.Tanh(),
    )


def curator(hidden, pixels):
    return nn.Sequential(
        nn.Linear(pixels, hidden),
        nn.LeakyReLU(0.2),
        nn.Linear(hidden, hidden),
        nn.LeakyReLU(0.2),
        nn.Linear(hidden, 1),
    )
