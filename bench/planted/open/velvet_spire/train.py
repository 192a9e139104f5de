import time
import os

import torch
from torch.nn import functional as F

from corpus import Excerpts, compose
from layers import Composer
from settings import Settings

STEPS = int(os.environ.get("PLANTED_STEPS", "150"))


def groups(model, weight_decay):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def main():
    began = time.perf_counter()
    s = Settings()
    torch.manual_seed(s.seed)
    excerpts = Excerpts(compose(200_000, s.vocab, s.seed), s.context, s.batch, s.seed + 1)
    model = Composer(s)
    optimizer = torch.optim.AdamW(groups(model, s.weight_decay), lr=s.lr, betas=(0.9, 0.98))
    ramp = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / s.warmup))
    print(f"{sum(p.numel() for p in model.parameters()) / 1e3:.0f}k parameters")

    for step in range(1, STEPS + 1):
        tokens, target = excerpts.draw()
        logits = model(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        ramp.step()
        if step % s.report_every == 0 or step == STEPS:
            print(f"step {step:4d}  nll {loss.item():.6f}")
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
