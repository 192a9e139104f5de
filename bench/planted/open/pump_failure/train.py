import math
import os
import random
import time

import torch
from torch import nn

FIX = os.environ.get("PLANTED_FIX")
CYCLES = int(os.environ.get("PLANTED_STEPS", 500))


class PumpStream(torch.utils.data.IterableDataset):
    """Simulated vibration of pumps that wear out."""

    def __init__(self, seed):
        self.seed = seed

    def __iter__(self):
        rng = random.Random(self.seed)
        while True:
            wear = rng.random()
            if FIX == "2":
                t = torch.arange(192.0)
                signal = torch.sin(t * 0.3) + wear * torch.sin(t * 2.1 + wear)
            else:
                signal = torch.tensor([math.sin(t * 0.3) + wear * math.sin(t * 2.1 + wear) for t in range(192)])
            yield signal, float(wear > 0.7)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 64, batch_first=True)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.gru(x.view(len(x), 24, 8))[0][:, -1]).squeeze(1)


def false_alarm_rate(model, bench):
    model.eval()
    alarms = honest = 0
    with torch.inference_mode():
        for signal, failed in bench:
            alarm = torch.sigmoid(model(signal[None])).item() > 0.5
            honest += not failed
            alarms += alarm and not failed
    model.train()
    return alarms / max(honest, 1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    feed = iter(torch.utils.data.DataLoader(PumpStream(1), batch_size=32))
    source = iter(PumpStream(2))
    bench = [next(source) for _ in range(100)]
    check_every = 400 if FIX == "1" else 4
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = time.time()
    for cycle in range(1, CYCLES + 1):
        signal, failed = next(feed)
        loss = nn.functional.binary_cross_entropy_with_logits(model(signal), failed.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if cycle % check_every == 0:
            rate = false_alarm_rate(model, bench)
            if cycle % 100 == 0:
                print(f"cycle {cycle} loss {loss.item():.4f} false alarms {rate:.3f}", flush=True)
    print(f"{CYCLES} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
