"""Energy per atom of small crystal cells."""

import copy
import os
import time

import torch
from torch.utils.data import DataLoader

from batching import joiner
from cells import AtomBudget, Cells
from net import CellNet


class Average:
    """Exponential average of the weights, used for testing."""

    def __init__(self, model, decay=0.99):
        self.model, self.decay = copy.deepcopy(model), decay

    @torch.no_grad()
    def update(self, model):
        torch._foreach_lerp_(list(self.model.parameters()), list(model.parameters()), 1 - self.decay)


@torch.no_grad()
def test(model, loader):
    errors = [(model(batch) - batch.energy).abs() for batch in loader]
    return torch.cat(errors).mean()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train, held = Cells(700, 1), Cells(40, 2)
    join = joiner()
    sampler = AtomBudget(train, budget=640)
    loader = DataLoader(train, batch_sampler=sampler, collate_fn=join, num_workers=0)
    test_loader = DataLoader(held, batch_size=20, collate_fn=join)
    model = CellNet()
    average = Average(model)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    steps = int(os.environ.get("PLANTED_STEPS", 6000))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps + 1)
    done, running, began = 0, 0.0, time.perf_counter()
    while done < steps:
        for batch in loader:
            loss = torch.nn.functional.smooth_l1_loss(model(batch), batch.energy)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            average.update(model)
            running = 0.98 * running + 0.02 * loss.item()
            done += 1
            if done % 150 == 0:
                print(f"{done}: {running:.4f}, held out {test(average.model, test_loader).item():.4f}", flush=True)
                torch.save({"model": model.state_dict(), "average": average.model.state_dict()}, "cells.pt")
            if done == steps:
                break
    print(f"{done} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
