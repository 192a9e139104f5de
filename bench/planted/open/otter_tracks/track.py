import os
import time
from itertools import islice

import torch
from torch import nn
from torch.utils.data import DataLoader

from convlstm import Tracker
from river import Films


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    steps = int(os.environ.get("PLANTED_STEPS", 400))
    films = DataLoader(Films(batch=16), batch_size=None, num_workers=0)
    net = Tracker()
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    history, start = [], time.perf_counter()
    for step, (film, place) in enumerate(islice(films, steps), 1):
        loss = nn.functional.mse_loss(net(film), place)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        history.append((loss.item(), norm.item()))
        if step % 20 == 0:
            print(f"step {step:4d}  loss {history[-1][0]:.5f}  gradient {history[-1][1]:.3f}")
        if step % 150 == 0:
            torch.save(net.state_dict(), "tracker.pt")
    print(f"{steps} steps in {time.perf_counter() - start:.3f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
