#!/usr/bin/env python
"""Which ward wrote this nursing note? A small BERT from scratch on synthetic notes, HF Trainer."""

import os
import random
import time
from collections import Counter
from functools import lru_cache

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.set_num_threads(1)

MAX_TOKENS = 64
WARDS = ["icu", "maternity", "ortho", "oncology"]
STEMS = "patient resting comfortably vitals stable pain score reported nausea after dose dressing changed wound clean dry intact family present ambulated assistance voided fluids encouraged oxygen nasal saturation monitored overnight awaiting review physiotherapy discharge planned bloods repeated".split()


def write_notes(n, seed):
    rng = random.Random(seed)
    notes = []
    for _ in range(n):
        ward = rng.randrange(len(WARDS))
        words = [STEMS[(rng.randrange(len(STEMS)) * (ward + 1)) % len(STEMS)] for _ in range(rng.randint(75, 100))]
        notes.append((" ".join(words), ward))
    return notes


def learn_merges(texts, count=180):
    """Byte-pair merges, learned the slow textbook way on a small sample."""
    vocab = Counter(w for t in texts for w in t.split())
    words = {w: tuple(w) + ("</w>",) for w in vocab}
    merges = []
    for _ in range(count):
        pairs = Counter()
        for w, symbols in words.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += vocab[w]
        if not pairs:
            break
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        words = {w: apply_merge(s, best) for w, s in words.items()}
    return merges


def apply_merge(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and symbols[i] == pair[0] and symbols[i + 1] == pair[1]:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)


class Bpe:
    def __init__(self, merges):
        self.rank = {pair: i for i, pair in enumerate(merges)}
        symbols = sorted({a + b for a, b in merges} | set("abcdefghijklmnopqrstuvwxyz") | {"</w>"})
        self.ids = {s: i + 2 for i, s in enumerate(symbols)}
        if os.environ.get("PLANTED_FIX") == "1":
            self.word = lru_cache(maxsize=None)(self.word)

    def word(self, w):
        symbols = tuple(w) + ("</w>",)
        while len(symbols) > 1:
            best = min(zip(symbols, symbols[1:]), key=lambda p: self.rank.get(p, 1 << 30))
            if best not in self.rank:
                break
            symbols = apply_merge(symbols, best)
        return [self.ids[s] for s in symbols]

    def __call__(self, text):
        ids = [1]
        for w in text.split():
            ids.extend(self.word(w))
        return ids


class Notes(Dataset):
    def __init__(self, notes, bpe):
        self.notes = notes
        self.bpe = bpe

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, i):
        text, ward = self.notes[i]
        ids = self.bpe(text)[:MAX_TOKENS]
        mask = [1] * len(ids) + [0] * (MAX_TOKENS - len(ids))
        ids = ids + [0] * (MAX_TOKENS - len(ids))
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "labels": torch.tensor(ward)}


if __name__ == "__main__":
    steps = int(os.environ.get("PLANTED_STEPS", 350))
    notes = write_notes(320, seed=1)
    bpe = Bpe(learn_merges([t for t, _ in notes[:60]]))
    config = BertConfig(
        vocab_size=len(bpe.ids) + 2,
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=MAX_TOKENS,
        num_labels=len(WARDS),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    torch.manual_seed(0)
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="out",
        max_steps=steps,
        per_device_train_batch_size=16,
        learning_rate=5e-4,
        lr_scheduler_type="constant",
        save_strategy="no",
        logging_strategy="steps",
        logging_steps=100,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=4,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(model=model, args=args, train_dataset=Notes(notes, bpe))
    t0 = time.time()
    result = trainer.train()
    print(f"{trainer.state.global_step} steps in {time.time() - t0:.2f}s, loss {result.training_loss:.4f}")
