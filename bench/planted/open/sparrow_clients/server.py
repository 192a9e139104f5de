"""The server: picks clients, averages what they send."""

import random

import torch
from clients import Client, GardenNet, Update


class Server:
    def __init__(self, model: GardenNet, momentum: float = 0.5) -> None:
        self.model, self.momentum = model, momentum
        self.velocity = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
        self.history: list[float] = []

    def choose(self, clients: list[Client], share: float, round_number: int) -> list[Client]:
        return random.Random(round_number).sample(clients, max(1, int(share * len(clients))))

    @torch.no_grad()
    def merge(self, updates: list[Update]) -> float:
        gardens = sum(update.gardens for update in updates)
        state = self.model.state_dict()
        for name, value in state.items():
            mean = sum(update.weights[name] * (update.gardens / gardens) for update in updates)
            self.velocity[name].mul_(self.momentum).add_(mean - value)
            value.add_(self.velocity[name])
        loss = sum(update.loss * update.gardens for update in updates) / gardens
        self.history.append(loss)
        return loss

    @torch.no_grad()
    def deviation(self, updates: list[Update]) -> float:
        """How far the clients went from each other."""
        flat = torch.stack([torch.cat([value.flatten() for value in update.weights.values()]) for update in updates])
        return float((flat - flat.mean(0)).norm(dim=1).mean())
