"""A loop with accelerate: its loaders, its optimizer, accumulation of two batches."""

import time

import torch
from accelerate import Accelerator
from styles import Slow, loader, loss_of


class Loss:
    """Slow to be divided by the number of batches, which accelerate does."""

    def __init__(self, value):
        self.value = value

    def __truediv__(self, count):
        time.sleep(0.002)
        return self.value / count


torch.set_num_threads(1)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = Slow()
model, optimizer, batches = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01), loader())
for x, y in batches:
    with accelerator.accumulate(model):
        accelerator.backward(Loss(loss_of(model, x, y)))
        optimizer.step()
        optimizer.zero_grad()
