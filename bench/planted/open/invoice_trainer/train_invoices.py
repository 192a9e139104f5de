"""Expense account of an invoice line (character ids), DistilBERT-sized down, HF Trainer."""

import os
import random
import time

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

torch.set_num_threads(1)
ACCOUNTS = 10
NOUNS = ["toner", "chair", "taxi", "hotel", "paint", "bolts", "lunch", "server", "permit", "gravel"]


class InvoiceLines(torch.utils.data.Dataset):
    def __init__(self, n=1500):
        rnd = random.Random(31)
        self.lines = []
        for _ in range(n):
            account = rnd.randrange(ACCOUNTS)
            text = f"{rnd.randint(1, 40)} x {NOUNS[account]} {rnd.randint(1, 999)}.00"
            if rnd.random() < 0.5:
                text += " net of discount"
            self.lines.append(([2 + ord(c) - 32 for c in text], account))

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        return self.lines[i]


class Collator:
    def __init__(self, max_length=128):
        self.max_length = max_length

    def __call__(self, rows):
        width = self.max_length
        if os.environ.get("PLANTED_FIX") == "1":
            width = max(len(ids) for ids, _ in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.zeros(len(rows), width, dtype=torch.long)
        for k, (line, _) in enumerate(rows):
            ids[k, : len(line)] = torch.tensor(line)
            mask[k, : len(line)] = 1
        return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([a for _, a in rows])}


def build_model():
    config = DistilBertConfig(
        vocab_size=100,
        dim=96,
        hidden_dim=288,
        n_layers=2,
        n_heads=4,
        max_position_embeddings=128,
        dropout=0.0,
        attention_dropout=0.0,
        seq_classif_dropout=0.0,
        num_labels=ACCOUNTS,
    )
    return DistilBertForSequenceClassification(config)


def main():
    torch.manual_seed(2)
    model = build_model()
    args = TrainingArguments(
        output_dir="out",
        max_steps=int(os.environ.get("PLANTED_STEPS", 180)),
        per_device_train_batch_size=24,
        learning_rate=1e-3,
        save_strategy="no",
        logging_steps=50,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
        lr_scheduler_type="constant",
        dataloader_pin_memory=False,
        seed=6,
    )
    trainer = Trainer(model=model, args=args, train_dataset=InvoiceLines(), data_collator=Collator())
    start = time.time()
    output = trainer.train()
    print(f"{trainer.state.global_step} steps in {time.time() - start:.2f}s, loss {output.training_loss:.4f}")


if __name__ == "__main__":
    main()
