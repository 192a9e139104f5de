import math
import time

import torch

from conf import load
from pair import LatentPair
from recordings import endless, simulate


def main():
    cfg = load()
    torch.manual_seed(cfg.seed)
    x = simulate(cfg.data)
    model = LatentPair(x.shape[-1], x.shape[1], cfg.model)
    opt = torch.optim.AdamW(model.trainable(), lr=cfg.optim.lr, weight_decay=cfg.optim.weight_decay)
    ramp = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / cfg.optim.warmup))
    masks = torch.Generator().manual_seed(cfg.seed + 100)
    batches = endless(x, cfg.data.batch, cfg.data.seed)

    start = time.perf_counter()
    value = float("nan")
    for step in range(cfg.steps):
        batch = next(batches)
        loss = model(batch, masks)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        ramp.step()
        share = 0.5 * (1 + math.cos(math.pi * min(1.0, step / 240)))
        model.follow(cfg.optim.tau_end - (cfg.optim.tau_end - cfg.optim.tau_start) * share)
        if (step + 1) % cfg.log_every == 0 or step + 1 == cfg.steps:
            value = loss.item()
            print(f"step {step + 1:4d}  loss {value:.5f}  lr {ramp.get_last_lr()[0]:.2e}", flush=True)
    print(f"{cfg.steps} steps in {time.perf_counter() - start:.2f} s, loss {value:.6f}")


if __name__ == "__main__":
    main()
