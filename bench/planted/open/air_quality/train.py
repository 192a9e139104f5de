import os
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VALIDATE_EVERY = 400 if os.environ.get("PLANTED_FIX") == "1" else 5


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(9, 64, batch_first=True)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1]).squeeze(1)


def series(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 24, 9, generator=g).cumsum(1) * 0.2
    return TensorDataset(x, x[:, -6:, 0].mean(1))


def validate(model, loader):
    model.eval()
    errors = []
    for x, y in loader:
        errors.append((model(x) - y).abs().mean())
    model.train()
    return torch.stack(errors).mean()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    accelerator = Accelerator(cpu=True)
    model = Recurrent()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train, held = DataLoader(series(2000, 1), batch_size=32, shuffle=True), DataLoader(series(800, 2), batch_size=32)
    model, optimizer, train, held = accelerator.prepare(model, optimizer, train, held)
    step, start, limit = 0, time.time(), int(os.environ.get("PLANTED_STEPS", 1200))
    while step < limit:
        for x, y in train:
            loss = nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step % VALIDATE_EVERY == 0:
                error = validate(model, held)
                if step % 100 == 0:
                    accelerator.print(f"{step}: error {error.item():.4f}")
            if step == limit:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
