"""Names minerals from their spectra: a mixture of experts, each row goes to its two best; bfloat16."""

import os
import time

import torch
from callbacks import Balance, Exam, Snapshot, Sweep
from experts import Mixture
from spectra import Spectra

torch.set_num_threads(1)


def train(net, data, optimizer, callbacks, steps):
    mean, source, began = None, data.batches(1024), time.time()
    for step in range(1, steps + 1):
        x, y = next(source)
        with torch.autocast("cpu", torch.bfloat16):
            logits, balance = net(x)
        loss = torch.nn.functional.cross_entropy(logits.float(), y) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
        for callback in callbacks:
            callback(step, mean, net, data)
    return mean, time.time() - began


def main():
    torch.manual_seed(53)
    steps = int(os.environ.get("PLANTED_STEPS", 200))
    data = Spectra()
    net = Mixture(data.points, data.minerals)
    optimizer = torch.optim.AdamW(net.parameters(), lr=8e-4, fused=True)
    callbacks = [Balance("balance.jsonl"), Exam(every=100), Snapshot("mixture.pt", every=130), Sweep(every=100)]
    mean, seconds = train(net, data, optimizer, callbacks, steps)
    print(f"{steps} steps in {seconds:.2f}s, loss {mean:.4f}")


if __name__ == "__main__":
    main()
