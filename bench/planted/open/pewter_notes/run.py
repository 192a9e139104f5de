"""Season of a field note, with accelerate."""

import os
import time
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

from corpus import SEASONS, write_notes
from encoder import NoteClassifier
from tokens import Collator, build_tokenizer


@dataclass
class Options:
    notes: int = 4000
    batch_size: int = 16
    max_length: int = 128
    width: int = 96
    heads: int = 4
    layers: int = 2
    lr: float = 1e-3
    steps: int = int(os.environ.get("PLANTED_STEPS", 160))
    seed: int = 8


def main(options: Options) -> None:
    set_seed(options.seed)
    accelerator = Accelerator(cpu=True)
    tokenizer = build_tokenizer()
    model = NoteClassifier(len(tokenizer), options.width, options.heads, options.layers, options.max_length, len(SEASONS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, fused=True)
    loader = DataLoader(
        write_notes(options.notes, options.seed),
        batch_size=options.batch_size,
        shuffle=True,
        drop_last=True,
        collate_fn=Collator(tokenizer, options.max_length),
    )
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    model.train()
    step, began = 0, time.perf_counter()
    while step < options.steps:
        for batch in loader:
            loss = model(**batch)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step % 25 == 0:
                accelerator.print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step == options.steps:
                break
    accelerator.print(f"{step} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(Options())
