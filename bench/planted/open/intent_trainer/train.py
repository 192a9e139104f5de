import os
import random
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

FAST = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", 300))


class Utterances(Dataset):
    def __init__(self, n=600):
        rng = random.Random(7)
        self.rows = []
        for _ in range(n):
            intent = rng.randrange(5)
            self.rows.append(([2] + [rng.randrange(10, 120) + 100 * intent for _ in range(rng.randint(30, 60))] + [3], intent))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, intent = self.rows[i]
        return {"input_ids": ids, "labels": intent}


class PadToMax:
    def __init__(self, max_length=512):
        self.max_length = max_length

    def __call__(self, rows):
        width = max(len(r["input_ids"]) for r in rows) if FAST else self.max_length
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        for k, r in enumerate(rows):
            ids[k, : len(r["input_ids"])] = torch.tensor(r["input_ids"])
        return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor([r["labels"] for r in rows])}


def main():
    torch.set_num_threads(1)
    set_seed(0)
    config = BertConfig(
        vocab_size=640,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        num_labels=5,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            out,
            max_steps=STEPS,
            per_device_train_batch_size=4,
            learning_rate=5e-4,
            logging_steps=100,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(BertForSequenceClassification(config), args, train_dataset=Utterances(), data_collator=PadToMax())
        start = time.time()
        result = trainer.train()
        print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {result.training_loss:.6f}")


if __name__ == "__main__":
    main()
