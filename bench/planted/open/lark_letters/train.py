"""Train the letter model."""

import argparse
import logging
import math
import os
import time

import torch
from layers import Layer, Norm
from letters import ALPHABET, Stream, write
from torch import nn

log = logging.getLogger("lark")


class LetterModel(nn.Module):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET), options.width)
        self.layers = nn.Sequential(*(Layer(options.width, options.heads, options.length) for _ in range(options.layers)))
        self.norm, self.head = Norm(options.width), nn.Linear(options.width, len(ALPHABET))
        self.apply(self._start)

    @staticmethod
    def _start(module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.03)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.layers(self.letters(codes))))

    @torch.no_grad()
    def sample(self, start: str, count: int, length: int) -> str:
        codes = torch.tensor([[ALPHABET.index(letter) for letter in start]])
        for _ in range(count):
            scores = self(codes[:, -length:])[:, -1]
            codes = torch.cat([codes, scores.argmax(-1, keepdim=True)], dim=1)
        return "".join(ALPHABET[code] for code in codes[0].tolist())


class Schedule:
    def __init__(self, optimizer: torch.optim.Optimizer, lr: float, warm: int, end: int) -> None:
        self.optimizer, self.lr, self.warm, self.end = optimizer, lr, warm, end

    def set(self, step: int) -> None:
        share = min(1.0, step / self.warm) * (0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, step / self.end))))
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr * share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--sample-every", type=int, default=100)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "160")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(45)
    model = LetterModel(options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = Schedule(optimizer, options.lr, warm=10, end=600)
    stream = Stream(write(400, 45), options.length, options.batch_size, 45)

    began, step, loss = time.perf_counter(), 0, torch.zeros(())
    for codes, following in stream:
        schedule.set(step + 1)
        loss = nn.functional.cross_entropy(model(codes).flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 5 == 0:
            log.info("step %d loss %.4f, %.2f bits", step, loss.item(), loss.item() / math.log(2))
        if step % options.sample_every == 0:
            log.info(model.sample("My dear", 12, options.length))
        if step == options.steps:
            break
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
