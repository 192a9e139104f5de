"""Hugging Face Trainer on a tiny model: data that sleeps, an evaluation and a checkpoint every few steps."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import DefaultDataCollator, Trainer, TrainingArguments


class Rows(Dataset):
    def __init__(self, count, wait):
        self.count, self.wait = count, wait

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.wait)
        return {"x": torch.full((8,), float(index % 5)), "labels": torch.tensor(index % 3)}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x, labels):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def main(output):
    torch.set_num_threads(1)
    arguments = TrainingArguments(
        output_dir=output,
        max_steps=24,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=int(sys.argv[2]) if len(sys.argv) > 2 else 1,
        eval_strategy="steps",
        eval_steps=8,
        save_steps=12,
        logging_steps=4,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_num_workers=0,
    )
    joins = DefaultDataCollator()
    trainer = Trainer(Model(), arguments, data_collator=joins, train_dataset=Rows(400, 0.004), eval_dataset=Rows(16, 0.004))
    trainer.train()
    print("steps", trainer.state.global_step)


if __name__ == "__main__":
    main(sys.argv[1])
