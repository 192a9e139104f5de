"""Stars from reviews, with accelerate: python train.py"""

import time

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

from corpus import reviews
from encoder import StarModel
from settings import settings
from tokens import Collator, Tokenizer


def endless(loader):
    while True:
        yield from loader


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = total = 0
    for batch in loader:
        right += (model(batch["ids"], batch["mask"]).argmax(-1) == batch["stars"]).sum().item()
        total += len(batch["stars"])
    model.train()
    return right / total


def main():
    conf = settings()
    set_seed(conf.seed)
    accelerator = Accelerator(cpu=True)
    train_rows = reviews(conf.reviews, conf.seed)
    test_rows = reviews(96, conf.seed + 1)
    tokenizer = Tokenizer([text for text, _ in train_rows], conf.vocabulary)
    collate = Collator(tokenizer, conf)
    generator = torch.Generator().manual_seed(conf.seed)
    loader = DataLoader(train_rows, conf.batch_size, shuffle=True, drop_last=True, collate_fn=collate, generator=generator)
    test = DataLoader(test_rows, 32, collate_fn=collate)
    model = StarModel(conf)
    optimizer = torch.optim.AdamW(model.parameters(), lr=conf.lr)
    model, optimizer, loader, test = accelerator.prepare(model, optimizer, loader, test)
    began, value = time.time(), float("nan")
    for step, batch in enumerate(endless(loader), start=1):
        with accelerator.accumulate(model):
            logits = model(batch["ids"], batch["mask"])
            loss = F.cross_entropy(logits, batch["stars"])
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        value = accelerator.gather(loss.detach()).mean().item()
        if step % conf.log_every == 0:
            accelerator.print(f"step {step} loss {value:.4f}")
        if step % conf.eval_every == 0:
            accelerator.print(f"step {step} accuracy {accuracy(model, test):.3f}")
        if step >= conf.steps:
            break
    accelerator.print(f"{step} steps in {time.time() - began:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
