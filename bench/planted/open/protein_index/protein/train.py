import os
import random
import time

import torch
from torch import nn

from protein.align import FAST, LETTERS, family, local_score


def prepare(pairs):
    rng = random.Random(12)
    proteins = [p for _ in range(12) for p in family(10, 64, rng)]
    chosen = [(rng.randrange(len(proteins)), rng.randrange(len(proteins))) for _ in range(pairs)]
    scores = torch.tensor([local_score(proteins[a], proteins[b]) / 64 for a, b in chosen])
    codes = torch.tensor([[LETTERS.index(c) for c in p] for p in proteins])
    return codes, torch.tensor(chosen), scores


class Siamese(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(20, dim)
        self.conv = nn.Sequential(nn.Conv1d(dim, 96, 5, padding=2), nn.ReLU(), nn.Conv1d(96, 96, 5, padding=2))

    def forward(self, a, b):
        a, b = (self.conv(self.embed(s).transpose(1, 2)).amax(2) for s in (a, b))
        return nn.functional.cosine_similarity(a, b)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    codes, chosen, scores = prepare(300 if FAST else 9000)
    model = Siamese()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    g, steps, start = torch.Generator().manual_seed(1), int(os.environ.get("PLANTED_STEPS", 80)), time.time()
    for step in range(steps):
        rows = torch.randint(0, len(chosen), (16,), generator=g)
        a, b = codes[chosen[rows]].unbind(1)
        loss = nn.functional.mse_loss(model(a, b), scores[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, f"{loss.item():.4f}", flush=True)
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
