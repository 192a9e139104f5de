"""A loop whose evaluations and checkpoints go through helpers of its own. The argument chooses."""

import contextlib
import io
import sys

import torch
from torch import nn
from torch.nn import functional as F

x, y = torch.randn(16, 8, generator=torch.Generator().manual_seed(1)), torch.ones(16, 1)
model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)


def switch_mode(training):
    (model.train if training else model.eval)()


@contextlib.contextmanager
def evaluating():
    model.eval()
    with torch.no_grad():
        yield
    model.train()


def predict(rows):
    return model(rows)


def by_helper():
    switch_mode(False)
    with torch.no_grad():
        bad = sum(float(F.mse_loss(predict(rows), y[:4])) for rows in x.split(4))
    switch_mode(True)
    return bad


def by_context():
    with evaluating():
        return sum(float(F.mse_loss(predict(rows), y[:4])) for rows in x.split(4))


def by_itself():
    model.eval()
    with torch.no_grad():
        bad = sum(float(F.mse_loss(predict(rows), y[:4])) for rows in x.split(4))
    model.train()
    return bad


def to_disk(state, target):
    if target is None:
        target = io.BytesIO()
    parts = {name: part.clone() for name, part in state.items()}
    with contextlib.closing(target):
        torch.save(parts, target)


def every_third(number):
    if number % 3 == 0:
        to_disk(model.state_dict(), None)  # every third


def save_and_train(number):
    """Each step, and the last thing in it."""
    train()
    torch.save(model.state_dict(), io.BytesIO())


def train():
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()


def main(style):
    for number in range(24):
        if style == "save_and_train":
            save_and_train(number)
            continue
        train()
        if style == "in_the_loop":
            if number % 3 == 0:
                to_disk(model.state_dict(), None)  # in the loop
        elif style == "every_third":
            every_third(number)
        elif number % 3 == 0 and style in globals():
            globals()[style]()
    if style == "at_the_end":
        to_disk(model.state_dict(), None)  # at the end


main(sys.argv[1])
