import time

import torch
from torch import nn

from bog.column import Column
from bog.config import Config
from bog.wells import Wells


def fit(cfg):
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    wells, column = Wells(cfg), Column(cfg)
    opt = torch.optim.AdamW(column.parameters(), lr=cfg.lr, fused=True)
    began = time.perf_counter()
    for step in range(1, cfg.steps + 1):
        site, rain, sun, table = wells.draw()
        loss = nn.functional.smooth_l1_loss(column(site, rain, sun), table)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % cfg.report == 0:
            print(f"step {step:5d}  error {loss.item():.4f}", flush=True)
    print(f"{cfg.steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    fit(Config())
