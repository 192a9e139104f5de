import os
import time
import tomllib

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from .net import ChorusNet
from .sounds import sing


def rate_at(update, run):
    return run["lr"] * min(1.0, (update + 1) / run["warmup"])


def main():
    with open("chorus.toml", "rb") as f:
        config = tomllib.load(f)
    run = config["run"]
    torch.set_num_threads(1)
    torch.manual_seed(run["seed"])
    g = torch.Generator().manual_seed(run["seed"])
    x, y = sing(**config["audio"], g=g)
    net = ChorusNet(x.shape[1], species=y.shape[1], **config["net"])
    opt = torch.optim.AdamW(net.parameters(), lr=run["lr"])

    device_batch = run["total_batch"] if os.environ.get("PLANTED_FIX") == "1" else run["device_batch"]
    assert run["total_batch"] % device_batch == 0
    accum_steps = run["total_batch"] // device_batch
    updates = int(os.environ.get("PLANTED_STEPS", run["updates"]))
    begin = time.time()
    for update in range(updates):
        rows = torch.randint(0, len(x), (run["total_batch"],), generator=g)
        total = 0.0
        for part in rows.split(device_batch):
            loss = binary_cross_entropy_with_logits(net(x[part]), y[part]) / accum_steps
            loss.backward()
            total += loss.item()
        for group in opt.param_groups:
            group["lr"] = rate_at(update, run)
        opt.step()
        opt.zero_grad(set_to_none=True)
        if update % 20 == 0:
            print(f"update {update:4d} loss {total:.4f}")
    print(f"{updates} steps in {time.time() - begin:.2f}s, loss {total:.6f}")


if __name__ == "__main__":
    main()
