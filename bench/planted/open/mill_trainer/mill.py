"""State of the mill stones from their sound, with the HF Trainer on a model of our own."""

import os
import time

import numpy as np
import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

from sounds import MillSounds


class MillNet(nn.Module):
    def __init__(self, width=96, layers=2, states=5):
        super().__init__()
        self.inp = nn.Linear(40, width)
        self.layers = nn.ModuleList(nn.GRU(width, width, batch_first=True) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.out = nn.Linear(width, states)

    def forward(self, sound, labels=None):
        h = self.inp(sound)
        for layer, norm in zip(self.layers, self.norms):
            h = h + layer(norm(h))[0]
        logits = self.out(h.mean(1))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


class Timer(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.begun = time.perf_counter()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero and logs and "loss" in logs:
            print(f"[{time.perf_counter() - self.begun:6.1f}s] step {state.global_step} lr {logs.get('learning_rate', 0):.1e}")

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.begun


if __name__ == "__main__":
    set_seed(1790)
    torch.set_num_threads(1)
    steps = int(os.environ.get("PLANTED_STEPS", 280))
    args = TrainingArguments(
        output_dir="mill",
        max_steps=steps,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=1e-3,
        warmup_steps=20,
        logging_steps=20,
        eval_strategy="steps",
        eval_steps=140,
        save_strategy="steps",
        save_steps=140,
        save_total_limit=1,
        dataloader_num_workers=0,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    timer = Timer()
    trainer = Trainer(
        model=MillNet(),
        args=args,
        train_dataset=MillSounds(3000, seed=1),
        eval_dataset=MillSounds(192, seed=2),
        callbacks=[timer],
        compute_metrics=lambda p: {"right": float((np.argmax(p.predictions, -1) == p.label_ids).mean())},
    )
    result = trainer.train()
    print(f"{steps} steps in {timer.seconds:.3f}s, loss {result.training_loss:.5f}")
