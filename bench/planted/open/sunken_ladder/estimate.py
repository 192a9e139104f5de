"""Rain rate along radar beams, trained with accelerate."""

import os
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from rain.beams import beams
from rain.net import RainNet
from rain.options import Options
from torch.utils.data import DataLoader


def main(options: Options) -> None:
    set_seed(options.seed)
    accelerator = Accelerator(cpu=True)
    model = RainNet(options.gates, options.width, options.heads, options.depth)
    optimizer = torch.optim.AdamW(model.parameters(), options.rate, fused=True)
    loader = DataLoader(beams(options.beams, options.gates, options.seed), options.batch, shuffle=True, drop_last=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    steps, done = int(os.environ.get("PLANTED_STEPS", options.steps)), 0
    began = time.perf_counter()
    while done < steps:
        for sweeps, rate in loader:
            loss = torch.nn.functional.smooth_l1_loss(model(sweeps), rate, beta=0.2)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            if done % options.report == 0:
                accelerator.print(f"step {done} loss {loss.item():.5f}", flush=True)
            if done == steps:
                break
    accelerator.print(f"{done} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(Options())
