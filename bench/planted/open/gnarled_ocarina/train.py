"""Small GPT-2 on generated folk tunes (note and duration tokens), Hugging Face Trainer."""

import gc
import os
import random
import time

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

STEPS = int(os.environ.get("PLANTED_STEPS", 240))
SEED = 29
CONTEXT = 96
SCALES = {"major": (0, 2, 4, 5, 7, 9, 11), "dorian": (0, 2, 3, 5, 7, 9, 10), "minor": (0, 2, 3, 5, 7, 8, 10)}
DURATIONS = (1, 2, 3, 4, 6, 8)

BAR, END = "<bar>", "<end>"
VOCAB = [BAR, END] + [f"scale_{s}" for s in SCALES] + [f"n{p}" for p in range(48, 96)] + [f"d{d}" for d in DURATIONS]
TOKEN = {t: i for i, t in enumerate(VOCAB)}


def bar_rhythm(rng):
    left, out = 8, []
    while left:
        out.append(rng.choice([d for d in DURATIONS if d <= left]))
        left -= out[-1]
    return out


def tune(rng):
    """AABA of four-bar phrases; the melody walks over a scale and ends each phrase on the tonic."""
    name = rng.choice(list(SCALES))
    scale, tonic = SCALES[name], rng.randrange(55, 67)
    rhythms = [bar_rhythm(rng) for _ in range(3)]

    def phrase():
        degree, tokens = rng.choice((0, 2, 4)), []
        for k in range(4):
            tokens.append(BAR)
            for d in rhythms[k % 3]:
                degree = max(-4, min(11, degree + rng.choice((-2, -1, -1, 0, 1, 1, 2))))
                octave, step = divmod(degree, 7)
                tokens += [f"n{tonic + 12 * octave + scale[step]}", f"d{d}"]
        tokens[-2] = f"n{tonic}"
        return tokens

    a, b = phrase(), phrase()
    return [TOKEN[t] for t in [f"scale_{name}"] + a + a + b + a + [END]]


class Tunes(Dataset):
    """All tunes in one stream, cut into blocks without padding."""

    def __init__(self, count, seed):
        rng = random.Random(seed)
        stream = np.fromiter((t for _ in range(count) for t in tune(rng)), dtype=np.int64)
        blocks = len(stream) // CONTEXT
        self.blocks = stream[: blocks * CONTEXT].reshape(blocks, CONTEXT)

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, i):
        return self.blocks[i]


def collate(rows):
    ids = torch.from_numpy(np.stack(rows))
    return {"input_ids": ids, "labels": ids.clone()}


class TuneTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        out = model(input_ids=inputs["input_ids"], labels=inputs["labels"])
        if model.training:
            self.last_loss = out.loss.item()
        return (out.loss, out) if return_outputs else out.loss


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        gc.collect()
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.wall = time.perf_counter() - self.start

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(f"step {state.global_step:4d}  loss {float(logs['loss']):.4f}  lr {float(logs['learning_rate']):.2e}")
        if logs and "eval_loss" in logs:
            print(f"step {state.global_step:4d}  held-out loss {float(logs['eval_loss']):.4f}")


def main():
    set_seed(SEED)
    train, held = Tunes(700, SEED), Tunes(44, SEED + 1)
    config = GPT2Config(
        vocab_size=len(VOCAB),
        n_positions=CONTEXT,
        n_embd=128,
        n_layer=3,
        n_head=4,
        resid_pdrop=0.1,
        embd_pdrop=0.1,
        attn_pdrop=0.1,
        bos_token_id=TOKEN[END],
        eos_token_id=TOKEN[END],
        use_cache=False,
    )
    model = GPT2LMHeadModel(config)
    print(f"{len(train)} blocks, {model.num_parameters():,} parameters")
    args = TrainingArguments(
        output_dir="out",
        max_steps=STEPS,
        per_device_train_batch_size=12,
        per_device_eval_batch_size=24,
        learning_rate=1e-3,
        lr_scheduler_type="cosine",
        warmup_steps=20,
        weight_decay=0.05,
        max_grad_norm=1.0,
        logging_steps=20,
        eval_strategy="steps",
        eval_steps=120,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=0,
        dataloader_drop_last=True,
        remove_unused_columns=False,
        seed=SEED,
        use_cpu=True,
    )
    clock = Clock()
    trainer = TuneTrainer(model=model, args=args, train_dataset=train, eval_dataset=held, data_collator=collate, callbacks=[clock])
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    model.eval()
    seed_bar = torch.tensor([[TOKEN["scale_dorian"], TOKEN[BAR]]])
    song = model.generate(seed_bar, attention_mask=torch.ones_like(seed_bar), do_sample=True, max_new_tokens=24, pad_token_id=TOKEN[END])
    print(" ".join(VOCAB[t] for t in song[0].tolist()))
    print(f"{trainer.state.global_step} steps in {clock.wall:.1f} s, loss {trainer.last_loss:.6f}")


if __name__ == "__main__":
    main()
