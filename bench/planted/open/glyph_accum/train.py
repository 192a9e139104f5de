import os
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAST = os.environ.get("PLANTED_FIX") == "1"
MICRO = 32 if FAST else 1
ACCUMULATE = 32 // MICRO


class Glyphs(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1),
            nn.GroupNorm(2, 8),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, 2, 1),
            nn.GroupNorm(4, 16),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 16, 10),
        )

    def forward(self, x):
        return self.layers(x)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATE)
    y = torch.randint(0, 10, (1920,))
    x = torch.randn(1920, 1, 16, 16) + y[:, None, None, None] * 0.1
    model = Glyphs()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(TensorDataset(x, y), batch_size=MICRO)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    updates, limit, total, start = 0, int(os.environ.get("PLANTED_STEPS", 500)), 0.0, time.time()
    while updates < limit:
        for images, labels in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(images), labels)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            total += loss.item() / ACCUMULATE
            if accelerator.sync_gradients:
                updates += 1
                last, total = total, 0.0
                if updates == limit:
                    break
    print(f"{updates} steps in {time.time() - start:.2f}s, loss {last:.6f}")


if __name__ == "__main__":
    main()
