import os
import time

import torch
from model import Debate
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TURNS = 640


def main(limit):
    torch.set_num_threads(1)
    torch.manual_seed(45)
    winner = torch.randint(0, 2, (64,))
    turns = torch.randn(64, TURNS, 20)
    turns[:, :, 0] += 0.3 * winner[:, None]
    loader = DataLoader(TensorDataset(turns, winner), batch_size=4, shuffle=True)
    model = Debate(TURNS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    done, start = 0, time.time()
    while done < limit:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done == limit:
                break
    print(f"{done} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(int(os.environ.get("PLANTED_STEPS", 90)))
