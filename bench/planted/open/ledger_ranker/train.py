import os
import time
from itertools import islice

import torch
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from feature_store import Store
from rows import clicks, minibatches
from scoring import make_scorer, score

USERS, ITEMS, WIDTH, BATCH = 5000, 2000, 48, 40


def train(steps):
    store = Store(USERS, WIDTH)
    torch.manual_seed(3)
    nets = make_scorer(WIDTH, ITEMS)
    opt = torch.optim.Adagrad(nets.parameters(), lr=0.02)
    log = clicks(USERS, ITEMS, 200_000, seed=8)
    t0 = time.time()
    for step, (profile, item, label) in enumerate(islice(minibatches(log, store, BATCH, seed=21), steps), 1):
        loss = bce(score(nets, profile, item), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}")
    seconds = time.time() - t0
    store.close()
    print(f"{steps} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(int(os.environ.get("PLANTED_STEPS", 450)))
