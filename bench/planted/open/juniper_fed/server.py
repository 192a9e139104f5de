"""FedAvg with momentum at the server."""

import copy

import torch


class Server:
    def __init__(self, model, momentum=0.5):
        self.model, self.momentum = model, momentum
        self.drift = {k: torch.zeros_like(v) for k, v in model.state_dict().items()}

    def lend(self):
        return copy.deepcopy(self.model)

    @torch.no_grad()
    def gather(self, models, sizes):
        total, own = sum(sizes), self.model.state_dict()
        states = [m.state_dict() for m in models]
        for name in own:
            mean = sum(s[name] * (n / total) for s, n in zip(states, sizes))
            self.drift[name] = self.momentum * self.drift[name] + (mean - own[name])
            own[name] = own[name] + self.drift[name]
        self.model.load_state_dict(own)
        return sum(d.norm().item() for d in self.drift.values())
