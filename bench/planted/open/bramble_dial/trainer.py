import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class TrainerArguments:
    per_device_batch_size: int = 32 if FIXED else 2
    gradient_accumulation_steps: int = 1 if FIXED else 16
    learning_rate: float = 1e-3
    max_updates: int = int(os.environ.get("PLANTED_STEPS", 200))
    max_grad_norm: float = 1.0
    log_every: int = 25
    seed: int = 14


class Trainer:
    def __init__(self, model: nn.Module, criterion: Callable[[Tensor, Tensor], Tensor], data: Dataset, args: TrainerArguments) -> None:
        self.model, self.criterion, self.args = model, criterion, args
        self.loader = DataLoader(
            data,
            args.per_device_batch_size,
            shuffle=True,
            drop_last=True,
            generator=torch.Generator().manual_seed(args.seed),
        )
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, fused=True)

    def endless(self):
        while True:
            yield from self.loader

    def update(self, stream) -> Tensor:
        total = torch.zeros(())
        for _ in range(self.args.gradient_accumulation_steps):
            inputs, targets = next(stream)
            loss = self.criterion(self.model(inputs), targets) / self.args.gradient_accumulation_steps
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def train(self) -> None:
        self.model.train()
        stream, start = self.endless(), time.perf_counter()
        for number in range(1, self.args.max_updates + 1):
            loss = self.update(stream)
            if number % self.args.log_every == 0:
                print({"update": number, "loss": round(loss.item(), 5)}, flush=True)
        print(f"{number} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")
