import argparse
import os
import time

import torch
from torch import nn

STEPS = int(os.environ.get("PLANTED_STEPS", 100))


class Melt(nn.Module):
    """Rolls the state of a glacier forward day by day."""

    def __init__(self, width=96):
        super().__init__()
        self.weather = nn.Linear(8, width)
        self.day = nn.Linear(width, width)
        self.runoff = nn.Linear(width, 1)

    def forward(self, weather):
        state = weather.new_zeros(len(weather), self.day.in_features)
        out = []
        for day in range(weather.shape[1]):
            state = torch.tanh(self.day(state) + self.weather(weather[:, day]))
            out.append(self.runoff(state))
        return torch.cat(out, dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=384)
    args = parser.parse_args()
    torch.set_num_threads(args.threads if os.environ.get("PLANTED_FIX") != "1" else 1)
    torch.manual_seed(26)
    weather = torch.randn(args.batch, 40, 8)
    melted = weather[..., 0].relu().cumsum(1) / 10
    model = Melt()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    t = time.time()
    for _ in range(STEPS):
        loss = nn.functional.mse_loss(model(weather), melted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    print(f"{STEPS} steps in {time.time() - t:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
