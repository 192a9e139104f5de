"""Fit the fade of cells: python fit.py fit.rate=0.001 ..."""

import os
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from cellfade import numerics
from cellfade.cells import curves
from cellfade.flow import Fade
from cellfade.options import Options, from_command_line
from torch.utils.data import DataLoader


def forever(loader: DataLoader):
    while True:
        yield from loader


def fit(options: Options) -> tuple[int, float]:
    plan = options.fit
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=plan.accumulate)
    data = curves(options.data.cells, options.data.samples, options.data.seed)
    model = Fade(options.model.state, options.model.width, options.model.substeps)
    optimizer = torch.optim.Adam(model.parameters(), plan.rate)
    loader = DataLoader(data, plan.batch, shuffle=True, drop_last=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    updates, total = 0, torch.zeros(())
    for duty, capacity in forever(loader):
        with accelerator.accumulate(model):
            loss = torch.nn.functional.smooth_l1_loss(100 * model(duty, capacity.shape[1]), 100 * capacity)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), plan.clip)
            optimizer.step()
            optimizer.zero_grad()
        total += loss.detach() / plan.accumulate
        if not accelerator.sync_gradients:
            continue
        updates += 1
        if updates % plan.report == 0:
            accelerator.print(f"update {updates} loss {total.item():.4f}", flush=True)
        if updates == plan.updates:
            return updates, total.item()
        total = torch.zeros(())
    raise AssertionError("the loader never ends")


def main() -> None:
    options = from_command_line()
    options.fit.updates = int(os.environ.get("PLANTED_STEPS", options.fit.updates))
    set_seed(options.data.seed)
    began = time.perf_counter()
    with numerics.applied(options.numerics):
        steps, loss = fit(options)
    print(f"{steps} steps in {time.perf_counter() - began:.2f} s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
