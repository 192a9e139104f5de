import os
import time

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

from build import small_gpt
from charters import Charters

LENGTH = 768


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.began = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.began


if __name__ == "__main__":
    set_seed(1066)
    torch.set_num_threads(1)
    steps = int(os.environ.get("PLANTED_STEPS", 110))
    args = TrainingArguments(
        output_dir="out",
        max_steps=steps,
        per_device_train_batch_size=2,
        learning_rate=2e-3,
        warmup_steps=10,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=1066,
        dataloader_num_workers=0,
    )
    clock = Clock()
    trainer = Trainer(model=small_gpt(LENGTH), args=args, train_dataset=Charters(400, LENGTH, 7), callbacks=[clock])
    result = trainer.train()
    print(f"{steps} steps in {clock.seconds:.3f}s, loss {result.training_loss:.5f}")
