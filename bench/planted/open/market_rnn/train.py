import contextlib
import os
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

TRACE = os.environ.get("PLANTED_FIX") != "1"


class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.update, self.candidate = nn.Linear(inputs + hidden, hidden), nn.Linear(inputs + hidden, hidden)

    def forward(self, x, h):
        z = torch.sigmoid(self.update(torch.cat([x, h], 1)))
        return (1 - z) * h + z * torch.tanh(self.candidate(torch.cat([x, h], 1)))


class Market(nn.Module):
    def __init__(self, inputs=5, hidden=16):
        super().__init__()
        self.cell, self.out, self.hidden = Cell(inputs, hidden), nn.Linear(hidden, 1), hidden

    def forward(self, days):
        h = days.new_zeros(days.shape[0], self.hidden)
        for day in days.unbind(1):
            h = self.cell(day, h)
        return self.out(h).squeeze(1)


def recorder():
    if not TRACE:
        return contextlib.nullcontext()
    return profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True, profile_memory=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Market()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    prices = torch.randn(600, 20, 5).cumsum(1) * 0.1
    moves = prices[:, -1, 0] - prices[:, 0, 0]
    steps = int(os.environ.get("PLANTED_STEPS", 400))
    start = time.time()
    with recorder():
        for step in range(steps):
            rows = torch.randint(0, 600, (16,))
            loss = nn.functional.mse_loss(model(prices[rows]), moves[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(step, loss.item(), flush=True)
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
