import argparse
import os
import time

import torch
from torch import nn

from .net import BerthNet
from .scenes import Scenes


def main() -> None:
    p = argparse.ArgumentParser(prog="harbor.train")
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 310)))
    p.add_argument("--validate-every", type=int, default=100)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train, valid = Scenes(640, 1), Scenes(32, 2)
    net, loss_fn = BerthNet(), nn.BCEWithLogitsLoss()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10_000)
    step, ema, began = 0, None, time.time()
    while step < a.steps:
        for x, y in train.epoch(a.batch):
            loss = loss_fn(net(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            ema = loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()
            if step % a.validate_every == 0:
                net.eval()
                with torch.no_grad():
                    right = [((net(vx) > 0) == vy.bool()).float().mean() for vx, vy in valid.epoch(32)]
                net.train()
                print(f"{step}: train {ema:.4f} valid acc {torch.stack(right).mean():.3f}", flush=True)
            if step == a.steps:
                break
    print(f"{step} steps in {time.time() - began:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main()
