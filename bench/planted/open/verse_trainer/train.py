import os
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

ROWS = 16 if os.environ.get("PLANTED_FIX") == "1" else 1
UPDATES = int(os.environ.get("PLANTED_STEPS", 130))


class Verses(Dataset):
    def __init__(self, n=2000, length=20):
        self.ids = (torch.randint(0, 5, (n, length)).cumsum(1) + torch.randint(0, 300, (n, 1))) % 300

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def training_arguments(folder):
    return TrainingArguments(
        output_dir=folder,
        max_steps=UPDATES,
        per_device_train_batch_size=ROWS,
        gradient_accumulation_steps=16 // ROWS,
        learning_rate=1e-3,
        optim="adamw_torch",
        save_strategy="no",
        logging_steps=10,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )


def main():
    torch.set_num_threads(1)
    set_seed(30)
    config = GPT2Config(vocab_size=300, n_positions=32, n_embd=48, n_layer=2, n_head=2, resid_pdrop=0.0, attn_pdrop=0.0, embd_pdrop=0.0)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(GPT2LMHeadModel(config), training_arguments(folder), train_dataset=Verses())
        began = time.time()
        loss = trainer.train().training_loss
        print(f"{UPDATES} steps in {time.time() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
