"""Pretraining of a causal language model of genome windows with accelerate (gradient accumulation)."""
import argparse
import os
import time

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_cosine_schedule_with_warmup

from genome import read_fasta, windows
from model import GenomeLM


def loader(tokens, batch_size, train):
    data = TensorDataset(tokens)
    return DataLoader(data, batch_size, shuffle=train, drop_last=train)


@torch.no_grad()
def evaluate(model, batches, accelerator):
    model.eval()
    loss, right, count = 0.0, 0, 0
    for (tokens,) in batches:
        tokens = tokens.long()
        logits, labels = model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
        loss += F.cross_entropy(logits, labels, reduction="sum").item()
        right += (logits.argmax(-1) == labels).sum().item()
        count += labels.numel()
    model.train()
    return loss / count, right / count


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fasta", default="genome.fa")
    p.add_argument("--length", type=int, default=128)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--accumulate", type=int, default=4)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--out", default="checkpoints")
    args = p.parse_args()

    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate)
    set_seed(0)
    contigs = list(read_fasta(args.fasta).values())
    train = torch.cat([windows(c, args.length + 1, 160) for c in contigs[:-1]])
    held_out = windows(contigs[-1], args.length + 1, 600)
    train_loader, val_loader = loader(train, args.batch_size, True), loader(held_out, args.batch_size, False)

    model = GenomeLM(args.length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98), weight_decay=0.01)
    updates = args.epochs * len(train_loader) // args.accumulate
    scheduler = get_cosine_schedule_with_warmup(optimizer, updates // 10, updates)
    model, optimizer, train_loader, val_loader, scheduler = accelerator.prepare(model, optimizer, train_loader, val_loader, scheduler)

    for epoch in range(args.epochs):
        start, running = time.time(), 0.0
        for step, (tokens,) in enumerate(train_loader):
            with accelerator.accumulate(model):
                tokens = tokens.long()
                logits = model(tokens[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            running += loss.detach()
            if (step + 1) % 20 == 0:
                accelerator.print(f"epoch {epoch} step {step + 1}/{len(train_loader)} loss {running.item() / 20:.6f}", flush=True)
                running = 0.0
        val, acc = evaluate(model, val_loader, accelerator)
        accelerator.print(f"epoch {epoch}: val {val:.6f} accuracy {acc:.4f} ({time.time() - start:.0f} s)", flush=True)
    os.makedirs(args.out, exist_ok=True)
    accelerator.save_model(model, args.out)


if __name__ == "__main__":
    main()
