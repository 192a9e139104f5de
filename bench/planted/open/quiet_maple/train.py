"""Train the promoter network."""

import logging
import time
from itertools import count

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from network import PromoterNet
from selection import KeepBest
from sequences import loaders
from settings import Settings
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("promoters")


def epochs(loader):
    for epoch in count():
        for batch in loader:
            yield epoch, batch


def main() -> None:
    settings = Settings()
    set_seed(settings.sequences.seed)
    accelerator = Accelerator(cpu=True)
    loader, held_out = loaders(settings.sequences, settings.batch_size)
    model = PromoterNet(settings.model)
    optimizer = torch.optim.AdamW(model.parameters(), settings.lr, weight_decay=settings.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.lr, total_steps=max(settings.steps, 360) + 1)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    keeper = KeepBest(accelerator.unwrap_model(model), held_out, len(loader), settings.selection)

    model.train()
    done, began = 0, time.perf_counter()
    for epoch, (bases, labels) in epochs(loader):
        with accelerator.accumulate(model):
            loss = nn.functional.binary_cross_entropy_with_logits(model(bases), labels)
            accelerator.backward(loss)
            norm = accelerator.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        done += 1
        if done % settings.report_every == 0:
            log.info("epoch %d step %d loss %.4f norm %.3f best %.4f", epoch, done, loss.item(), float(norm), keeper.best)
        if not keeper.after_step() or done >= settings.steps:
            break
    seconds = time.perf_counter() - began
    log.info("best %s on held-out sequences: %.4f", settings.selection.metric, keeper.best)
    print(f"{done} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
