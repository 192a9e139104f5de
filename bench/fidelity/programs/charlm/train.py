"""Character model with gradient accumulation: python train.py [--resume out/ckpt_50.pt]"""

import math
import os
import random
import sys

import torch

from model import CharGPT, Config

seed = 1337
max_iters = 160
eval_interval = 40
eval_iters = 6
save_interval = 50
batch_size = 8
block_size = 32
grad_accum = 2
learning_rate = 4e-3
min_lr = 4e-4
warmup_iters = 20
weight_decay = 0.1
grad_clip = 0.35


def make_text(length, seed):
    rng = random.Random(seed)
    words = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 6))) for _ in range(60)]
    parts, size, last = [], 0, 0
    while size < length:
        last = (last * 7 + rng.randint(0, 3)) % len(words)
        parts.append(words[last])
        size += len(words[last]) + 1
        if rng.random() < 0.1:
            parts[-1] += "."
    return " ".join(parts)[:length]


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    os.makedirs("out", exist_ok=True)

    text = make_text(36_000, seed)
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}
    tokens = torch.tensor([stoi[c] for c in text], dtype=torch.long)
    train_data, val_data = tokens[:32_000], tokens[32_000:]

    def get_batch(split):
        data = train_data if split == "train" else val_data
        ix = torch.randint(len(data) - block_size, (batch_size,))
        x = torch.stack([data[i : i + block_size] for i in ix])
        y = torch.stack([data[i + 1 : i + 1 + block_size] for i in ix])
        return x, y

    model = CharGPT(Config(vocab_size=len(chars), block_size=block_size))
    decay = [p for p in model.parameters() if p.dim() >= 2]
    nodecay = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": weight_decay}, {"params": nodecay, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), foreach=False)

    @torch.no_grad()
    def estimate_loss():
        out = {}
        model.eval()
        for split in ["train", "val"]:
            losses = torch.zeros(eval_iters)
            for k in range(eval_iters):
                X, Y = get_batch(split)
                _, loss = model(X, Y)
                losses[k] = loss.item()
            out[split] = losses.mean().item()
        model.train()
        return out

    start = 0
    if len(sys.argv) > 2 and sys.argv[1] == "--resume":
        checkpoint = torch.load(sys.argv[2])
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        torch.set_rng_state(checkpoint["rng"])
        start = checkpoint["iter_num"]

    model.train()
    for it in range(start, max_iters):
        lr = get_lr(it)
        for group in optimizer.param_groups:
            group["lr"] = lr
        if it > 0 and it % eval_interval == 0:
            losses = estimate_loss()
            print(f"iter {it}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}", flush=True)
        for micro in range(grad_accum):
            X, Y = get_batch("train")
            logits, loss = model(X, Y)
            loss = loss / grad_accum
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if it % 10 == 0:
            print(f"iter {it}: loss {loss.item() * grad_accum:.4f}, norm {norm.item():.3f}, lr {lr:.5f}", flush=True)
        if (it + 1) % save_interval == 0:
            checkpoint = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "iter_num": it + 1,
                "rng": torch.get_rng_state(),
            }
            torch.save(checkpoint, f"out/ckpt_{it + 1}.pt")
    losses = estimate_loss()
    print(f"final: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}", flush=True)


if __name__ == "__main__":
    main()
