"""Train a small GPT-2 from scratch on tunes, with an accelerate loop."""
import argparse
import json
import math
import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup

import tunes


class CharTokenizer:
    def __init__(self, text):
        self.chars = sorted(set(text))
        self.ids = {c: i for i, c in enumerate(self.chars)}

    def encode(self, text):
        return [self.ids[c] for c in text]

    def decode(self, ids):
        return "".join(self.chars[i] for i in ids)


class Blocks(Dataset):
    """The text cut into blocks of equal length."""

    def __init__(self, ids, block_size):
        n = len(ids) // block_size
        self.ids = torch.tensor(ids[:n * block_size]).view(n, block_size)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--block_size", type=int, default=128)
    p.add_argument("--batch_size", type=int, default=4)
    p.add_argument("--gradient_accumulation_steps", type=int, default=2)
    p.add_argument("--n_layer", type=int, default=4)
    p.add_argument("--n_head", type=int, default=4)
    p.add_argument("--n_embd", type=int, default=128)
    p.add_argument("--learning_rate", type=float, default=1e-3)
    p.add_argument("--weight_decay", type=float, default=0.1)
    p.add_argument("--num_train_epochs", type=int, default=3)
    p.add_argument("--max_train_blocks", type=int, default=None)
    p.add_argument("--logging_steps", type=int, default=20)
    p.add_argument("--sample_length", type=int, default=160)
    p.add_argument("--output_dir", default="output")
    p.add_argument("--seed", type=int, default=42)
    return p.parse_args()


@torch.no_grad()
def evaluate(model, loader, accelerator):
    model.eval()
    losses = []
    for batch in loader:
        loss = model(**batch).loss
        losses.append(accelerator.gather_for_metrics(loss.repeat(len(batch["input_ids"]))))
    loss = torch.cat(losses).mean().item()
    return loss, math.exp(loss)


def sample(model, tokenizer, accelerator, length):
    model.eval()
    prompt = torch.tensor([tokenizer.encode("X:1\nM:6/8\nK:D\n|:")], device=accelerator.device)
    out = accelerator.unwrap_model(model).generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=length, do_sample=True, top_k=20,
        pad_token_id=tokenizer.ids["\n"])
    return tokenizer.decode(out[0].tolist())


def main():
    args = parse_args()
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    set_seed(args.seed)

    text = tunes.ensure()
    tokenizer = CharTokenizer(text)
    split = int(0.9 * len(text))
    train_set = Blocks(tokenizer.encode(text[:split]), args.block_size)
    eval_set = Blocks(tokenizer.encode(text[split:]), args.block_size)
    if args.max_train_blocks:
        train_set.ids = train_set.ids[:args.max_train_blocks]
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)
    eval_loader = DataLoader(eval_set, batch_size=4 * args.batch_size)

    config = GPT2Config(vocab_size=len(tokenizer.chars), n_positions=args.block_size + args.sample_length,
                        n_embd=args.n_embd, n_layer=args.n_layer, n_head=args.n_head,
                        bos_token_id=None, eos_token_id=None)
    model = GPT2LMHeadModel(config)
    accelerator.print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(train_set)} blocks")

    decay = [p for n, p in model.named_parameters() if p.dim() > 1]
    rest = [p for n, p in model.named_parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": args.weight_decay},
                                   {"params": rest, "weight_decay": 0.0}], lr=args.learning_rate, betas=(0.9, 0.95))
    updates = args.num_train_epochs * math.ceil(len(train_loader) / args.gradient_accumulation_steps)
    scheduler = get_cosine_schedule_with_warmup(optimizer, int(0.05 * updates), updates)
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler)

    completed, history = 0, []
    for epoch in range(args.num_train_epochs):
        model.train()
        running = 0.0
        for step, batch in enumerate(train_loader):
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            running += loss.detach().item()
            if accelerator.sync_gradients:
                completed += 1
                if completed % args.logging_steps == 0:
                    accelerator.print(f"update {completed} loss {loss.item():.5f} lr {scheduler.get_last_lr()[0]:.6f}",
                                      flush=True)
        eval_loss, perplexity = evaluate(model, eval_loader, accelerator)
        history.append({"epoch": epoch, "train_loss": running / len(train_loader), "eval_loss": eval_loss,
                        "perplexity": perplexity})
        accelerator.print(history[-1], flush=True)
        accelerator.print(sample(model, tokenizer, accelerator, args.sample_length), flush=True)
        accelerator.save_state(os.path.join(args.output_dir, f"epoch_{epoch}"))

    accelerator.unwrap_model(model).save_pretrained(args.output_dir)
    with open(os.path.join(args.output_dir, "history.json"), "w") as f:
        json.dump(history, f, indent=1)


if __name__ == "__main__":
    main()
