"""A small transformer learns to read numbers, measures and times aloud; scored by generating every so many steps."""
import argparse

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from tqdm.auto import tqdm

from data import CharTokenizer, Collator, SpokenNumbers, make_pairs
from model import Seq2Seq


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--train_examples", type=int, default=6400)
    p.add_argument("--val_examples", type=int, default=160)
    p.add_argument("--per_device_batch_size", type=int, default=16)
    p.add_argument("--num_train_epochs", type=int, default=1)
    p.add_argument("--learning_rate", type=float, default=1e-3)
    p.add_argument("--warmup_steps", type=int, default=40)
    p.add_argument("--eval_every", type=int, default=100)
    p.add_argument("--max_target_length", type=int, default=72)
    p.add_argument("--output_dir", default="output")
    p.add_argument("--seed", type=int, default=11)
    return p.parse_args()


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def loss_of(model, source, target, pad):
    logits = model(source, target[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=pad, label_smoothing=0.05)


@torch.no_grad()
def evaluate(model, loader, tokenizer, accelerator, args):
    model.eval()
    losses, exact, errors, chars, count = [], 0, 0, 0, 0
    for source, target in loader:
        losses.append(loss_of(model, source, target, tokenizer.pad_token_id).item())
        generated = accelerator.unwrap_model(model).generate(source, args.max_target_length)
        for hypothesis, reference in zip(generated.tolist(), target.tolist()):
            said, truth = tokenizer.decode(hypothesis[1:]), tokenizer.decode(reference[1:])
            exact += said == truth
            errors += edit_distance(said, truth)
            chars += len(truth)
            count += 1
    model.train()
    return {"val_loss": sum(losses) / len(losses), "exact": exact / count, "cer": errors / chars}


def main():
    args = parse_args()
    accelerator = Accelerator(log_with="tensorboard", project_dir=args.output_dir)
    set_seed(args.seed)
    accelerator.init_trackers("spoken_numbers", config=vars(args))

    train_pairs = make_pairs(args.train_examples, seed=1)
    val_pairs = make_pairs(args.val_examples, seed=2)
    tokenizer = CharTokenizer([t for pair in train_pairs + val_pairs for t in pair])
    collator = Collator(tokenizer)
    train_loader = DataLoader(SpokenNumbers(train_pairs, tokenizer), shuffle=True,
                              batch_size=args.per_device_batch_size, collate_fn=collator)
    val_loader = DataLoader(SpokenNumbers(val_pairs, tokenizer),
                            batch_size=args.per_device_batch_size, collate_fn=collator)

    model = Seq2Seq(len(tokenizer), tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=0.01)
    total = args.num_train_epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / args.warmup_steps, max(0.0, (total - step) / (total - args.warmup_steps))))
    model, optimizer, train_loader, val_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, val_loader, scheduler)

    step, best = 0, float("inf")
    bar = tqdm(range(total), disable=not accelerator.is_local_main_process)
    for epoch in range(args.num_train_epochs):
        model.train()
        for source, target in train_loader:
            loss = loss_of(model, source, target, tokenizer.pad_token_id)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
            bar.update(1)
            if step % 10 == 0:
                accelerator.log({"loss": loss.item(), "lr": scheduler.get_last_lr()[0]}, step=step)
            if step % args.eval_every == 0:
                metrics = evaluate(model, val_loader, tokenizer, accelerator, args)
                accelerator.log(metrics, step=step)
                accelerator.print(f"step {step}: loss {loss.item():.3f} "
                                  + " ".join(f"{k} {v:.3f}" for k, v in metrics.items()))
                if metrics["cer"] < best:
                    best = metrics["cer"]
                    accelerator.save_model(model, args.output_dir + "/best")
    accelerator.end_training()
    accelerator.print(f"best character error rate {best:.3f}")


if __name__ == "__main__":
    main()
