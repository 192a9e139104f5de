"""Question answering with accelerate. accelerate launch train.py, or python train.py"""

import os
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

from model import SpanReader
from questions import Questions
from recipe import Recipe


def main() -> None:
    torch.set_num_threads(1)
    recipe = Recipe()
    set_seed(recipe.seed)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=recipe.accumulate)
    model = SpanReader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.lr, weight_decay=0.01, fused=True)
    loader = DataLoader(
        Questions(recipe.examples, seed=6),
        batch_size=recipe.per_device,
        shuffle=True,
        drop_last=True,
        generator=torch.Generator().manual_seed(recipe.seed),
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / recipe.warmup))
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    limit = int(os.environ.get("PLANTED_STEPS", recipe.updates))

    update, total, value = 0, torch.zeros(()), float("nan")
    begun = time.perf_counter()
    while update < limit:
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch)
                accelerator.backward(loss)
                total += loss.detach()
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), recipe.clip)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                update += 1
                value = total.item() / recipe.accumulate
                total.zero_()
                accelerator.print(f"update {update}: loss {value:.4f}, lr {schedule.get_last_lr()[0]:.2e}")
                if update >= limit:
                    break
    seconds = time.perf_counter() - begun
    accelerator.save(accelerator.unwrap_model(model).state_dict(), "reader.pt")
    print(f"{update} steps in {seconds:.2f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
