"""Learn a short code for sonar echoes: python run.py fit.steps=400 codec.books=3"""

import os
import sys
import time

import torch
from codec import Book, Codec
from pings import stream
from settings import Settings, read


def sharpness(step: int, rise: int) -> int:
    return 1 + step // rise


def main(settings: Settings) -> None:
    fit = settings.fit
    steps = int(os.environ.get("PLANTED_STEPS", fit.steps))
    torch.manual_seed(fit.seed)
    torch._dynamo.config.recompile_limit = fit.variants
    codec = Codec(settings.pings.length, **vars(settings.codec))
    books = [part for part in codec.modules() if isinstance(part, Book)]
    through = torch.compile(codec, backend=fit.backend)
    optimizer = torch.optim.AdamW(codec.parameters(), fit.rate, fused=True)
    batches = stream(**vars(settings.pings), batch=fit.batch, seed=fit.seed)
    total, began = 0.0, time.perf_counter()
    for step in range(steps):
        for book in books:
            book.sharpen(sharpness(step, fit.rise))
        batch = next(batches)
        heard, left = through(batch)
        loss = nn_loss(heard, batch) + 0.25 * left
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if (step + 1) % fit.report == 0:
            print(f"step {step + 1} loss {total / fit.report:.5f}", flush=True)
            total = 0.0
    print(f"{steps} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


def nn_loss(heard: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.smooth_l1_loss(heard, said, beta=0.5)


if __name__ == "__main__":
    main(read(sys.argv[1:]))
