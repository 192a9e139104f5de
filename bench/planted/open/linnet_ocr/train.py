"""Reads strips of letters with CTC. python train.py --steps 900"""

import argparse
import os
import time

import torch
import torch.nn.functional as F

from callbacks import CharacterErrors, Console, KeepLast
from reader import Reader
from strips import HEIGHT, LETTERS, Strips


class Trainer:
    def __init__(self, model, source, lr: float, batch: int, callbacks: list):
        self.model, self.source, self.batch, self.callbacks = model, source, batch, callbacks
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.loss, self.cer = float("nan"), 1.0

    def save(self, path: str) -> None:
        torch.save(self.model.state_dict(), path)

    def train_step(self, step: int) -> None:
        page, letters = self.source.batch(self.batch)
        scores = self.model(page)
        lengths = torch.full((self.batch,), scores.size(0))
        sizes = torch.full((self.batch,), letters.size(1))
        loss = F.ctc_loss(scores, letters, lengths, sizes, zero_infinity=True)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        self.loss = loss.item()
        for callback in self.callbacks:
            callback.on_step_end(self, step, scores.detach(), letters)

    def fit(self, steps: int) -> None:
        begun = time.perf_counter()
        for step in range(1, steps + 1):
            self.train_step(step)
        seconds = time.perf_counter() - begun
        for callback in self.callbacks:
            callback.on_end(self)
        print(f"{steps} steps in {seconds:.2f}s, loss {self.loss:.6f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=15)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    model = Reader(HEIGHT, len(LETTERS))
    trainer = Trainer(model, Strips(args.seed), args.lr, args.batch, [CharacterErrors(), Console(), KeepLast()])
    trainer.fit(int(os.environ.get("PLANTED_STEPS", args.steps)))


if __name__ == "__main__":
    main()
