"""Find the channels of a delta in its height map."""

import argparse
import os
import time

import torch
import torch.nn.functional as F
from terrain import carve
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset
from unet import UNet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--maps", type=int, default=512)
    parser.add_argument("--size", type=int, default=48)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=60)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    maps = TensorDataset(*carve(args.maps, args.size, args.seed))
    picks = BatchSampler(RandomSampler(maps), args.batch, drop_last=True)
    loader = DataLoader(maps, sampler=picks, batch_size=None)
    model = UNet(args.width).to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)
    limit = int(os.environ.get("PLANTED_STEPS", args.epochs * len(loader)))

    step, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        total = torch.zeros(())
        for height, mask in loader:
            loss = F.binary_cross_entropy_with_logits(model(height), mask)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            step += 1
            if step >= limit:
                break
        print(f"epoch {epoch} mean loss {total.item() / len(loader):.4f}", flush=True)
        if step >= limit:
            break
    print(f"{step} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
