"""Tell promoters from decoys."""

import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from footprint import plan
from network import Reader, loss_of
from promoters import loaders
from settings import Settings


@torch.no_grad()
def accuracy(model: torch.nn.Module, loader) -> float:
    model.eval()
    right = [((model(letters) > 0) == labels.bool()).float() for letters, labels in loader]
    model.train()
    return torch.cat(right).mean().item()


def endless(loader):
    while True:
        yield from loader


def main() -> None:
    settings = Settings()
    schedule = settings.schedule
    set_seed(schedule.seed)
    batch, passes = plan(settings)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=passes)
    train, held_out = loaders(settings, batch)
    model = Reader(settings.network)
    optimizer = torch.optim.AdamW(model.parameters(), schedule.rate, weight_decay=1e-3)
    model, optimizer, train, held_out = accelerator.prepare(model, optimizer, train, held_out)

    step, losses, last = 0, [], float("nan")
    began = time.perf_counter()
    for letters, labels in endless(train):
        with accelerator.accumulate(model):
            loss = loss_of(model, letters, labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
        if not accelerator.sync_gradients:
            continue
        step, last, losses = step + 1, torch.stack(losses).mean().item(), []
        if step % schedule.report == 0:
            accelerator.print(f"step {step} loss {last:.4f}", flush=True)
        if step % schedule.check == 0:
            accelerator.print(f"step {step} accuracy {accuracy(model, held_out):.4f}", flush=True)
        if step == schedule.steps:
            break
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {last:.6f}")


if __name__ == "__main__":
    main()
