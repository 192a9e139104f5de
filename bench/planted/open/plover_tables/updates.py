import os

import torch


class Pair:
    """Steps several optimisers as one."""

    def __init__(self, *members):
        self.members = members

    def zero_grad(self):
        for m in self.members:
            m.zero_grad()

    def step(self):
        for m in self.members:
            m.step()


def for_model(model, lr):
    if os.environ.get("PLANTED_FIX") == "1":
        return Pair(torch.optim.SparseAdam(list(model.tables.parameters()), lr=lr), torch.optim.Adam(model.deep.parameters(), lr=lr))
    return torch.optim.Adam(model.parameters(), lr=lr)
