import os
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Tickets(Dataset):
    def __init__(self, n=1200, length=96):
        g = torch.Generator().manual_seed(1)
        first = torch.randint(0, 400, (n, 1), generator=g)
        self.ids = (first + torch.arange(length) * 7) % 400

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def main():
    torch.set_num_threads(1)
    set_seed(0)
    config = GPT2Config(vocab_size=400, n_positions=96, n_embd=128, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            out,
            max_steps=int(os.environ.get("PLANTED_STEPS", 350)),
            per_device_train_batch_size=16,
            optim="sgd",
            learning_rate=0.02,
            max_grad_norm=0.0,
            logging_steps=100,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(GPT2LMHeadModel(config), args, train_dataset=Tickets())
        start = time.time()
        result = trainer.train()
        print(f"{args.max_steps} steps in {time.time() - start:.2f}s, loss {result.training_loss:.6f}")


if __name__ == "__main__":
    main()
