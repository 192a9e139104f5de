import os
import tempfile
import time

import torch
from torch import nn

FIX = os.environ.get("PLANTED_FIX")
UPDATES = int(os.environ.get("PLANTED_STEPS", 800))


def make_batches(g, rows=320):
    while True:
        x = torch.randn(rows, 96, generator=g)
        yield x, (x[:, 0] * x[:, 1] > 0.3).float()


def area_under_curve(scores, labels):
    """Share of pairs (fraud, honest) that are ranked right."""
    if FIX == "1":
        positive, negative = scores[labels == 1], scores[labels == 0]
        return (positive[:, None] > negative[None]).float().mean().item()
    scores, labels = scores.tolist(), labels.tolist()
    right = pairs = 0
    for i, label in enumerate(labels):
        if label != 1:
            continue
        for j, other in enumerate(labels):
            if other == 0:
                pairs += 1
                if scores[i] > scores[j]:
                    right += 1
    return right / max(pairs, 1)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(96, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 1))

    def forward(self, x):
        return self.layers(x).squeeze(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Tower()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    stream = make_batches(torch.Generator().manual_seed(2))
    save_every = 1000 if FIX == "2" else 3
    smoothed = 0.5
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        for update in range(1, UPDATES + 1):
            seen = []
            for _ in range(2):
                x, y = next(stream)
                logits = model(x)
                loss = nn.functional.binary_cross_entropy_with_logits(logits, y) / 2
                loss.backward()
                seen.append((logits.detach(), y))
            optimizer.step()
            optimizer.zero_grad()
            auc = area_under_curve(torch.cat([s for s, _ in seen]), torch.cat([y for _, y in seen]))
            smoothed = 0.98 * smoothed + 0.02 * auc
            if update % save_every == 0:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, os.path.join(folder, "tower.pt"))
            if update % 100 == 0:
                print(f"{update}: loss {loss.item():.4f} auc {smoothed:.3f}", flush=True)
        print(f"{UPDATES} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
