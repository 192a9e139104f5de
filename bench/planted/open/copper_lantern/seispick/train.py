"""python -m seispick.train [--steps N]"""

import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from seispick.archive import Archive
from seispick.picker import Picker
from seispick.stream import Windows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="seispick.train")
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 480)))
    parser.add_argument("--records", type=int, default=400)
    parser.add_argument("--length", type=int, default=4000, help="samples per archived record")
    parser.add_argument("--width", type=int, default=2048, help="samples per training window")
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=11)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)
    archive = Archive(args.records, args.length, stations=17, seed=args.seed)
    loader = DataLoader(Windows(archive, args.width, Picker.STRIDE, args.seed), batch_size=args.batch)
    model = Picker(args.channels)
    optimizer = torch.optim.AdamW(model.parameters(), args.rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.rate, total_steps=args.steps + 1)

    began = time.perf_counter()
    running = 0.0
    for step, (waves, onsets) in zip(range(1, args.steps + 1), loader, strict=False):
        loss = nn.functional.cross_entropy(model(waves), onsets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running = 0.95 * running + 0.05 * loss.detach()
        if step % 50 == 0:
            print(f"step {step} loss {running / (1 - 0.95**step):.4f}", flush=True)
    print(f"{step} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
