"""Python and many small operators: a recurrent cell written by hand, lists and dictionaries made anew in each step."""

import torch
from burn import Burn

torch.set_num_threads(1)
torch.manual_seed(0)
weight = torch.randn(24, 24, requires_grad=True)
bias = torch.zeros(24, requires_grad=True)
optimizer = torch.optim.SGD([weight, bias], lr=1e-3)
words = torch.randn(40, 6, 24)
for _step in range(1_000_000):
    with Burn():
        state, seen = torch.zeros(6, 24), []
        for position in range(40):
            state = torch.tanh(words[position] + state @ weight + bias)
            seen.append({"position": position, "state": state})
        loss = torch.stack([each["state"] for each in seen]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
