import os
import tempfile
import time

import torch
from batches import EventFile, collate
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __init__(self, n=900):
        g = torch.Generator().manual_seed(5)
        self.y = torch.randint(0, 3, (n,), generator=g)
        self.frames = [torch.randn(50 + int(i) % 20, 64, generator=g) * (1 + y) for i, y in enumerate(self.y.tolist())]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.frames[i], self.y[i]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Frames(), batch_size=32, shuffle=True, collate_fn=collate)
    model = nn.Sequential(
        nn.Unflatten(1, (1, -1)),
        nn.Conv1d(1, 24, 32, stride=4),
        nn.ReLU(),
        nn.Conv1d(24, 32, 8, stride=4),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(32, 3),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    limit, step = int(os.environ.get("PLANTED_STEPS", 600)), 0
    with tempfile.TemporaryDirectory() as folder:
        events = EventFile(os.path.join(folder, "events.jsonl"))
        start = time.time()
        while step < limit:
            for wave, y in loader:
                loss = nn.functional.cross_entropy(model(wave), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                events.write(step, loss, model)
                if step == limit:
                    break
        print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
