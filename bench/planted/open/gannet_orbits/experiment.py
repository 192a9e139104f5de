import time

import torch


class Experiment:
    """Fits an energy to a survey; everything lives where the survey lives."""

    def __init__(self, net, survey, batch=768, lr=1e-3):
        self.survey, self.batch = survey, batch
        self.net = net.to(survey)
        self.optim = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.picker = torch.Generator().manual_seed(15)

    def update(self):
        rows = torch.randint(0, len(self.survey), (self.batch,), generator=self.picker)
        state, rate = self.survey[rows].split(4, dim=1)
        loss = (self.net.flow(state) - rate).square().mean()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return loss.detach()

    def run(self, steps, report=100):
        t = time.perf_counter()
        for n in range(1, steps + 1):
            loss = self.update()
            if n % report == 0:
                print(f"{n:4d} {loss:.6f}")
        print(f"{steps} steps in {time.perf_counter() - t:.2f}s, loss {loss.item():.6f}")
