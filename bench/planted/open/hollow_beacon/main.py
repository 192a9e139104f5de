"""python -m torch.distributed.run --standalone --nproc-per-node 2 main.py"""

import sys
import time
from pathlib import Path

import torch
import yaml
from flow.field import Share, patches
from flow.loop import gather_gradients
from flow.model import Surface
from flow.ranks import asked_steps, group, mean_over_ranks
from torch.nn.parallel import DistributedDataParallel


def main(path: str) -> None:
    config = yaml.safe_load(Path(path).read_text())
    field, plan = config["field"], config["train"]
    steps = asked_steps(plan["steps"])
    with group() as (rank, world):
        torch.manual_seed(field["seed"])
        data = patches(field["patches"], field["side"], field["channels"], field["seed"])
        model = DistributedDataParallel(Surface(data[0].shape[1], **config["model"]), gradient_as_bucket_view=True)
        optimizer = torch.optim.AdamW(model.parameters(), plan["rate"], fused=True)
        climb = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / plan["warmup"]))
        parts = iter(Share(data, rank, world, plan["batch"]))
        began = time.perf_counter()
        for step in range(1, steps + 1):
            loss = gather_gradients(model, parts, plan["accumulate"])
            torch.nn.utils.clip_grad_norm_(model.parameters(), plan["clip"])
            optimizer.step()
            optimizer.zero_grad()
            climb.step()
            if step % plan["report"] == 0:
                shown = mean_over_ranks(loss)
                if rank == 0:
                    print(f"step {step} loss {shown:.4f}", flush=True)
        final = mean_over_ranks(loss)
        if rank == 0:
            print(f"{steps} steps in {time.perf_counter() - began:.2f}s, loss {final:.6f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "config.yaml")
