import os
import tempfile
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

STEPS = int(os.environ.get("PLANTED_STEPS", 80))


class Haiku(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.lines = (torch.randint(0, 9, (n, 64), generator=g).cumsum(1) % 400).tolist()

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        line = [token for token in self.lines[i]]
        return {"input_ids": line, "attention_mask": [1] * len(line), "labels": line}


class Longest(TrainerCallback):
    """Notes the worst loss so far."""

    worst = 0.0

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.worst = max([self.worst, *sorted(v for k, v in logs.items() if k == "loss")])


def main():
    torch.set_num_threads(1)
    set_seed(90)
    config = GPT2Config(vocab_size=400, n_positions=64, n_embd=128, n_layer=3, n_head=4, use_cache=False)
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder,
            max_steps=STEPS,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            learning_rate=1e-3,
            logging_steps=1,
            eval_strategy="steps",
            eval_steps=40,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(GPT2LMHeadModel(config), args, train_dataset=Haiku(900, 0), eval_dataset=Haiku(16, 1), callbacks=[Longest()])
        t = time.time()
        loss = trainer.train().training_loss
        print(f"{STEPS} steps in {time.time() - t:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
