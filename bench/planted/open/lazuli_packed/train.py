"""Letters of chronicles, one after the other."""

import argparse
import gc
import os
import time

import torch
from torch import nn

from chronicle import LETTERS, loader
from scribe import Scribe


class Progress:
    """Running mean, perplexity and the pace, on screen and in a file."""

    def __init__(self, path, every):
        self.path, self.every, self.mean, self.letters = path, every, None, 0
        self.began = time.perf_counter()

    def see(self, step, loss, letters):
        self.letters += letters
        self.mean = loss if self.mean is None else 0.95 * self.mean + 0.05 * loss
        if step % self.every == 0:
            line = f"{step}\t{self.mean:.4f}\t{2.718281828**self.mean:.2f}\t{self.letters / (time.perf_counter() - self.began):.0f}"
            print(line, flush=True)
            with open(self.path, "a") as file:
                file.write(line + "\n")


@torch.no_grad()
def test(model, batches):
    model.eval()
    losses = [nn.functional.cross_entropy(model(text), goal).item() for text, goal in batches]
    model.train()
    return sum(losses) / len(losses)


def norms(model):
    return {n: p.grad.norm().item() for n, p in model.named_parameters() if p.grad is not None}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--checkpoint-every", type=int, default=150)
    args = parser.parse_args()
    torch.manual_seed(19)
    torch.set_num_threads(1)
    train, held = loader(3200, 1, args.batch), list(loader(64, 2, args.batch))
    model = Scribe(LETTERS)
    optimizer = torch.optim.AdamW(model.parameters(), args.lr)
    progress = Progress("chronicle.tsv", 5)
    gc.collect()
    gc.freeze()
    steps, step, began = int(os.environ.get("PLANTED_STEPS", 2500)), 0, time.perf_counter()
    while step < steps:
        for text, goal in train:
            loss = nn.functional.cross_entropy(model(text), goal)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            total = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            progress.see(step, loss.item(), len(goal))
            if step % 20 == 0:
                largest = max(norms(model).items(), key=lambda pair: pair[1])
                print(f"norm {total.item():.3f}, largest {largest[0]} {largest[1]:.3f}", flush=True)
            if step % args.checkpoint_every == 0:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, "scribe.pt")
                print("held out", round(test(model, held), 4), "writes", model.write(step % LETTERS, 10), flush=True)
            if step == steps:
                break
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
