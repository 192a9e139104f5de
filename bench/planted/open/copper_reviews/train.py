"""Star ratings from tabular reviews with the Hugging Face Trainer."""

import os
import time

import numpy as np
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

from collator import TableCollator
from modeling import TableConfig, TableModel
from records import Reviews


class Clock(TrainerCallback):
    """Prints the running loss at each log and keeps the time of the loop."""

    def on_train_begin(self, args, state, control, **kwargs):
        self.begun = time.perf_counter()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(f"[{state.global_step:5d}] loss {float(logs['loss']):.4f}", flush=True)

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.begun


def accuracy(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, axis=-1) == prediction.label_ids).mean())}


def main():
    torch.set_num_threads(1)
    set_seed(23)
    steps = int(os.environ.get("PLANTED_STEPS", 700))
    model = TableModel(TableConfig())
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=steps,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        learning_rate=1e-3,
        warmup_steps=20,
        weight_decay=0.01,
        logging_steps=10,
        save_strategy="no",
        eval_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        seed=23,
    )
    clock = Clock()
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Reviews(3000, seed=1),
        eval_dataset=Reviews(160, seed=2),
        data_collator=TableCollator(),
        compute_metrics=accuracy,
        callbacks=[clock],
    )
    result = trainer.train()
    print(trainer.evaluate())
    print(f"{steps} steps in {clock.seconds:.2f}s, loss {result.training_loss:.6f}")


if __name__ == "__main__":
    main()
