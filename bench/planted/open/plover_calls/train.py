"""Tell the calls of plovers apart. Large batches are made of several smaller ones."""

import argparse
import logging
import os
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import torch
from calls import Calls, record
from network import CallNet
from torch import nn
from torch.utils.data import DataLoader, random_split

log = logging.getLogger("plover")


class Averages:
    def __init__(self) -> None:
        self.values: dict[str, list[float]] = defaultdict(list)

    def add(self, **figures: float) -> None:
        for name, figure in figures.items():
            self.values[name].append(figure)

    def take(self) -> str:
        text = ", ".join(f"{name} {sum(values) / len(values):.4f}" for name, values in self.values.items())
        self.values.clear()
        return text


class EMA:
    """Averages of the weights, for the validation."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = [p.detach().clone() for p in model.parameters()]

    @torch.no_grad()
    def follow(self, model: nn.Module) -> None:
        torch._foreach_lerp_(self.weights, list(model.parameters()), 1 - self.decay)

    @torch.no_grad()
    def swap(self, model: nn.Module) -> None:
        for parameter, weight in zip(model.parameters(), self.weights, strict=True):
            parameter.data, weight.data = weight.data, parameter.data


@torch.no_grad()
def validate(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    right = sum(int((model(waves).argmax(1) == labels).sum()) for waves, labels in loader)
    model.train()
    return right / len(loader.dataset)


def run(options: argparse.Namespace, folder: Path) -> tuple[int, float, float]:
    torch.manual_seed(options.seed)
    path = folder / "calls.plov"
    record(path, options.calls, options.samples, options.kinds, options.seed)
    train, valid = random_split(Calls(path), [0.9, 0.1], generator=torch.Generator().manual_seed(1))
    loader = DataLoader(train, options.batch_size, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(2))
    check = DataLoader(valid, 32)
    model = CallNet(options.width, options.kinds)
    average = EMA(model, 0.99)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    averages = Averages()

    began, step, parts, loss = time.perf_counter(), 0, 0, torch.zeros(())
    while step < options.steps:
        for waves, labels in loader:
            scores = model(waves)
            loss = nn.functional.cross_entropy(scores, labels)
            (loss / options.accumulate).backward()
            averages.add(loss=loss.item(), right=float((scores.argmax(1) == labels).float().mean()))
            parts += 1
            if parts % options.accumulate:
                continue
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            averages.add(norm=float(norm))
            optimizer.step()
            optimizer.zero_grad()
            average.follow(model)
            step += 1
            log.info("step %d: %s", step, averages.take())
            if step % options.validate_every == 0:
                average.swap(model)
                log.info("validation %.3f", validate(model, check))
                average.swap(model)
                torch.save({"model": model.state_dict(), "step": step}, folder / "last.pt")
            if step == options.steps:
                break
    return step, time.perf_counter() - began, loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=800)
    parser.add_argument("--samples", type=int, default=8000)
    parser.add_argument("--kinds", type=int, default=6)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--validate-every", type=int, default=25)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=51)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "50")))
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with tempfile.TemporaryDirectory() as folder:
        step, seconds, loss = run(parser.parse_args(), Path(folder))
    print(f"{step} steps in {seconds:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
