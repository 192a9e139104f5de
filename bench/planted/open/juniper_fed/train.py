"""Federated averaging over clinics, simulated in one process. A step is one client's step."""

import gc
import json
import os
import random
import time

import torch
from torch import nn
from torch.nn import functional as F

from clinics import LEADS, RHYTHMS, Clinic
from server import Server


class Beats(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.enter = nn.Conv1d(LEADS, width, 9, padding=4)
        self.blocks = nn.ModuleList(nn.Conv1d(width, width, 7, padding=3) for _ in range(4))
        self.norms = nn.ModuleList(nn.GroupNorm(8, width) for _ in range(4))
        self.out = nn.Linear(width, RHYTHMS)

    def forward(self, x):
        h = self.enter(x)
        for conv, norm in zip(self.blocks, self.norms):
            h = h + F.relu(norm(conv(h)))
        return self.out(h.mean(2))


def pull(model, anchor):
    """FedProx: a client must not stray far."""
    return sum((p - a).square().sum() for p, a in zip(model.parameters(), anchor))


class Simulation:
    def __init__(self, clinics, chosen=4, local=15, batch=32):
        self.clinics = [Clinic(n) for n in range(clinics)]
        self.server = Server(Beats())
        self.chosen, self.local, self.batch = chosen, local, batch
        self.limit, self.done, self.rounds = int(os.environ.get("PLANTED_STEPS", 3000)), 0, 0
        self.dice = random.Random(5)

    def visit(self, clinic):
        model = self.server.lend()
        anchor = [p.detach().clone() for p in model.parameters()]
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        for x, y in clinic.batches(self.batch, self.local):
            loss = F.cross_entropy(model(x), y) + 0.005 * pull(model, anchor)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            self.done += 1
            self.loss = loss.item()
            if self.done >= self.limit:
                break
        return model

    def round(self):
        guests = self.dice.sample(self.clinics, self.chosen)
        models = []
        for clinic in guests:
            models.append(self.visit(clinic))
            if self.done >= self.limit:
                return
        drift = self.server.gather(models, [len(c) for c in guests])
        self.rounds += 1
        with open("rounds.jsonl", "a") as file:
            file.write(json.dumps({"round": self.rounds, "guests": [c.number for c in guests], "drift": drift, "loss": self.loss}) + "\n")
        print(f"round {self.rounds} ({self.done} steps): loss {self.loss:.4f}, drift {drift:.3f}, right {self.score():.3f}", flush=True)
        del models
        gc.collect()
        torch.save(self.server.model.state_dict(), "server.pt")

    @torch.no_grad()
    def score(self):
        right = [(self.server.model(c.x[:16]).argmax(1) == c.y[:16]).float().mean().item() for c in self.clinics[:4]]
        return sum(right) / len(right)


def main():
    torch.manual_seed(51)
    torch.set_num_threads(1)
    simulation, began = Simulation(12), time.perf_counter()
    while simulation.done < simulation.limit:
        simulation.round()
    print(f"{simulation.done} steps in {time.perf_counter() - began:.3f}s, loss {simulation.loss:.5f}")


if __name__ == "__main__":
    main()
