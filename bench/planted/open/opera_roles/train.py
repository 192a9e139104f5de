import os
import random
import tempfile
import time

import torch
from batches import ROLES, WHICH, Libretto
from torch import nn

SAVE = 400 if WHICH == "2" else 2


class Roles(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.word = nn.Embedding(4000, width, padding_idx=0)
        self.near = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(3))
        self.role = nn.Linear(width, ROLES)

    def forward(self, ids):
        known = (ids > 0)[:, None].float()
        h = self.word(ids).transpose(1, 2)
        for conv in self.near:
            h = (h + torch.relu(conv(h))) * known
        return self.role(h.sum(-1) / known.sum(-1))


def save(folder, **parts):
    torch.save({name: part.state_dict() for name, part in parts.items()}, os.path.join(folder, "roles.pt"))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(48)
    steps = int(os.environ.get("PLANTED_STEPS", 300))
    libretto, rng = Libretto(), random.Random(3)
    model = Roles()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    began = time.time()
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, steps + 1):
            ids, roles = libretto.batch(rng)
            loss = nn.functional.cross_entropy(model(ids), roles)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % SAVE == 0:
                save(folder, model=model, optimizer=optimizer)
    print(f"{steps} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
