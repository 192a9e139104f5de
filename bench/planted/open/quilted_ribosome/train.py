"""Masked-residue pretraining of a small protein encoder with the Hugging Face Trainer."""

import os
import random
import time

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

AMINO = "ACDEFGHIKLMNPQRSTVWY"
PAD, CLS, SEP, MASK = range(4)
VOCAB = {a: i + 4 for i, a in enumerate(AMINO)}
MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 200))


def make_families(n_families, rng):
    """A family is a consensus with conserved and free positions."""
    families = []
    for _ in range(n_families):
        length = int(rng.integers(88, 113))
        consensus = rng.choice(list(AMINO), size=length)
        conserved = rng.random(length) < 0.7
        families.append((consensus, conserved))
    return families


def draw_protein(families, rng):
    consensus, conserved = families[rng.integers(len(families))]
    seq = np.where(conserved | (rng.random(len(consensus)) < 0.3), consensus, rng.choice(list(AMINO), size=len(consensus)))
    cut = int(rng.integers(0, 5))
    return "".join(seq[cut:])


class Proteins(Dataset):
    def __init__(self, sequences):
        self.sequences = sequences

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, i):
        return {"input_ids": [CLS] + [VOCAB[a] for a in self.sequences[i]] + [SEP]}


class MaskingCollator:
    def __init__(self, prob=0.15, seed=0):
        self.prob = prob
        self.g = torch.Generator().manual_seed(seed)

    def __call__(self, examples):
        ids = [torch.tensor(e["input_ids"]) for e in examples]
        ids = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=PAD)
        attention = (ids != PAD).long()
        chosen = (torch.rand(ids.shape, generator=self.g) < self.prob) & (ids >= 4)
        labels = torch.where(chosen, ids, -100)
        draw = torch.rand(ids.shape, generator=self.g)
        noisy = torch.where(chosen & (draw < 0.8), MASK, ids)
        swap = torch.randint(4, len(VOCAB) + 4, ids.shape, generator=self.g)
        noisy = torch.where(chosen & (draw > 0.9), swap, noisy)
        return {"input_ids": noisy, "attention_mask": attention, "labels": labels}


class Stopwatch(TrainerCallback):
    def on_train_begin(self, args, state, control, **kw):
        self.start = time.perf_counter()
        self.stamps = []

    def on_step_end(self, args, state, control, **kw):
        self.stamps.append(time.perf_counter() - self.start)

    def on_log(self, args, state, control, logs=None, **kw):
        if "loss" in logs:
            print(f"step {state.global_step} loss {float(logs['loss']):.4f} grad norm {float(logs['grad_norm']):.3f}")
        elif "eval_loss" in logs:
            print(f"step {state.global_step} eval loss {float(logs['eval_loss']):.4f}")

    def on_train_end(self, args, state, control, **kw):
        self.took = time.perf_counter() - self.start


class ProteinTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        out = model(**inputs)
        if model.training:
            self.last_loss = out.loss.item()
        return (out.loss, out) if return_outputs else out.loss


def main():
    set_seed(31)
    random.seed(31)
    rng = np.random.default_rng(31)
    families = make_families(12, rng)
    train = Proteins([draw_protein(families, rng) for _ in range(3000)])
    valid = Proteins([draw_protein(families, rng) for _ in range(128)])

    config = BertConfig(
        vocab_size=len(VOCAB) + 4,
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=384,
        max_position_embeddings=128,
        pad_token_id=PAD,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForMaskedLM(config)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters")
    args = TrainingArguments(
        output_dir="out",
        max_steps=MAX_STEPS,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        learning_rate=1e-3,
        warmup_steps=20,
        logging_steps=10,
        eval_strategy="steps",
        eval_steps=100,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        seed=31,
    )
    watch = Stopwatch()
    trainer = ProteinTrainer(
        model=model,
        args=args,
        train_dataset=train,
        eval_dataset=valid,
        data_collator=MaskingCollator(seed=31),
        callbacks=[watch],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    print(f"{trainer.state.global_step} steps in {watch.took:.2f} s, loss {trainer.last_loss:.6f}")


if __name__ == "__main__":
    main()
