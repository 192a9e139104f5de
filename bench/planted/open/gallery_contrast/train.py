"""Paintings and their captions into one space: two towers over precomputed features, contrastive loss, bfloat16."""

import os
import time

import torch
from exam import Cosine, Retrieval
from museum import Museum
from torch.utils.data import DataLoader
from towers import Pair

torch.set_num_threads(1)


def contrast(pair, pictures, captions):
    """Symmetric cross-entropy over all pairs of the batch, and the share of captions whose own picture is nearest."""
    with torch.autocast("cpu", torch.bfloat16):
        a, b = pair(pictures, captions)
        scores = a @ b.T
    scores = scores.float() * pair.scale.exp().clamp(max=100)
    target = torch.arange(len(scores))
    loss = 0.5 * (torch.nn.functional.cross_entropy(scores, target) + torch.nn.functional.cross_entropy(scores.T, target))
    return loss, (scores.detach().argmax(0) == target).float().mean()


def main():
    torch.manual_seed(43)
    steps = int(os.environ.get("PLANTED_STEPS", 240))
    loader = DataLoader(
        Museum(), batch_size=768, collate_fn=tuple, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(4)
    )
    pair = Pair(Museum.picture, Museum.caption)
    opt = torch.optim.AdamW(pair.parameters(), lr=4e-4, weight_decay=0.02, fused=True)
    museum = loader.dataset
    exam, schedule = Retrieval(museum.pictures[:256], museum.captions[:256]), Cosine(opt, 4e-4, 30, steps)
    step, mean, hit, began = 0, None, 0.0, time.time()
    while step < steps:
        for pictures, captions in loader:
            schedule.set(step)
            loss, hits = contrast(pair, pictures, captions)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
            hit = 0.9 * hit + 0.1 * hits.item()
            print(f"step {step} loss {mean:.4f} hits {hit:.3f} scale {pair.scale.exp().item():.2f}", flush=True)
            if step % 100 == 0:
                print("   retrieval", exam(pair), flush=True)
            if step == steps:
                break
    print(f"{step} steps in {time.time() - began:.2f}s, loss {mean:.4f}")


if __name__ == "__main__":
    main()
