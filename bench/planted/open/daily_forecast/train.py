import datetime
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 480))
PERSISTENT = os.environ.get("PLANTED_FIX") == "1"
CALENDAR = {}


def load_calendar(worker_id):
    """Weekday, week and holiday flags for 120 years, by day number."""
    torch.set_num_threads(1)
    day = datetime.date(1910, 1, 1)
    for number in range(120 * 365):
        current = day + datetime.timedelta(days=number)
        holiday = current.strftime("%d-%m") in ("01-01", "25-12", "01-05")
        CALENDAR[number] = (current.isocalendar()[1] / 53, current.weekday() / 6, float(holiday))


class Demand(Dataset):
    def __init__(self, days=448):
        g = torch.Generator().manual_seed(3)
        t = torch.arange(days + 28).float()
        self.series = torch.sin(t / 7) + 0.1 * torch.randn(days + 28, generator=g)
        self.days = days

    def __len__(self):
        return self.days

    def __getitem__(self, i):
        flags = torch.tensor([CALENDAR[30000 + i + k] for k in range(28)]).flatten()
        return torch.cat([self.series[i : i + 28], flags]), self.series[i + 28]


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(112, 1024), nn.SiLU(), nn.Linear(1024, 1024), nn.SiLU(), nn.Linear(1024, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Forecast()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    loader = DataLoader(Demand(), batch_size=56, shuffle=True, num_workers=2, worker_init_fn=load_calendar, persistent_workers=PERSISTENT)
    step, started, epoch = 0, time.time(), 0
    while step < MAX_STEPS:
        for window, target in loader:
            loss = nn.functional.huber_loss(model(window), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step >= MAX_STEPS:
                break
        epoch += 1
    print(f"{step} steps in {time.time() - started:.2f}s, loss {loss.item():.6f} after {epoch} epochs")


if __name__ == "__main__":
    main()
