import copy
import gc
import time

import torch
from torch import nn


class Average:
    """Running mean of weights, for evaluation."""

    def __init__(self, model, decay=0.99):
        self.model, self.decay = copy.deepcopy(model).eval(), decay

    @torch.no_grad()
    def update(self, model):
        mine, theirs = list(self.model.parameters()), list(model.parameters())
        torch._foreach_lerp_(mine, theirs, 1 - self.decay)
        for a, b in zip(self.model.buffers(), model.buffers()):
            a.copy_(b)


@torch.no_grad()
def evaluate(model, loader):
    right = count = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
        count += len(y)
    return right / count


def train(model, train_loader, test_loader, optimizer, schedule, steps, log_every):
    average, done, epoch, began = Average(model), 0, 0, time.perf_counter()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    while done < steps:
        model.train()
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            average.update(model)
            done += 1
            if done % log_every == 0:
                print(f"epoch {epoch} step {done}/{steps} loss {loss.item():.4f} lr {schedule.get_last_lr()[0]:.2e}")
            if done == steps:
                break
        epoch += 1
        print(f"epoch {epoch} top-1 {evaluate(average.model, test_loader):.3f}")
        torch.save({"model": model.state_dict(), "average": average.model.state_dict()}, "last.pt")
        gc.collect()
    return done, time.perf_counter() - began, loss.item()
