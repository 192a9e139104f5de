"""Pretrain on recordings of motion."""

import logging
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch
from config import Config
from lightning.fabric import Fabric
from meadow import FillIn, loss_of
from recordings import Batches, make

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("meadow")


@torch.no_grad()
def check(model, batches: Batches, count: int = 2) -> float:
    model.eval()
    losses = [loss_of(model(patches, hidden), patches, hidden) for patches, hidden in islice(batches, count)]
    model.train()
    return torch.stack(losses).mean().item()


def main() -> None:
    config = Config()
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.seed_everything(config.seed, verbose=False)
    train = Batches(make(config, config.seed, config.recordings), config, config.seed)
    valid = Batches(make(config, config.seed + 1, 48), config, config.seed + 1)
    model = FillIn(config)
    optimizer = torch.optim.AdamW(model.parameters(), config.lr, weight_decay=0.05, fused=True)
    model, optimizer = fabric.setup(model, optimizer)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / config.warmup))

    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        for step, (patches, hidden) in enumerate(islice(train, config.steps), 1):
            loss = loss_of(model(patches, hidden), patches, hidden)
            fabric.backward(loss)
            fabric.clip_gradients(model, optimizer, max_norm=config.clip)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if step % config.report_every == 0:
                log.info("step %d loss %.4f lr %.2e", step, loss.item(), schedule.get_last_lr()[0])
            if step % config.check_every == 0:
                log.info("step %d on other recordings %.4f", step, check(model, valid))
            if step % config.save_every == 0:
                fabric.save(Path(name) / f"step{step}.ckpt", {"model": model, "step": step})
        seconds = time.perf_counter() - began
    print(f"{config.steps} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
