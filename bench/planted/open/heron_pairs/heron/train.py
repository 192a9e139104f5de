"""SimCLR on plumage. python -m heron.train --epochs 90"""

import os
import time

import torch
from torch.utils.data import DataLoader

from heron.encoder import Encoder, nt_xent
from heron.images import EpochSampler, PlumagePairs, ensure
from heron.options import parse

FIX = os.environ.get("PLANTED_FIX") == "1"


def build_loader(options):
    data = PlumagePairs(ensure(options.data))
    sampler = EpochSampler(len(data), options.seed)
    loader = DataLoader(
        data,
        sampler=sampler,
        batch_size=options.batch,
        num_workers=options.workers,
        drop_last=True,
        prefetch_factor=2,
        persistent_workers=FIX,
    )
    return loader, sampler


def main():
    options = parse()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    loader, sampler = build_loader(options)
    model = Encoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    total = options.epochs * len(loader)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
    limit = int(os.environ.get("PLANTED_STEPS", total))
    step, value, begun = 0, float("nan"), time.perf_counter()
    for epoch in range(options.epochs):
        sampler.epoch = epoch
        for first, second in loader:
            loss = nt_xent(model(first), model(second), options.temperature)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
            value = loss.item()
            if not options.quiet:
                print(f"epoch {epoch} step {step} loss {value:.4f} lr {schedule.get_last_lr()[0]:.5f}", flush=True)
            if step >= limit:
                break
        if step >= limit:
            break
    seconds = time.perf_counter() - begun
    torch.save(model.state_dict(), "encoder.pt")
    print(f"{step} steps in {seconds:.2f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
