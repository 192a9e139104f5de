"""Hugging Face Trainer on a tiny language model with a debugger and recomputation left on."""

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.set_num_threads(1)
shape = GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=32, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(shape)
rows = [{"input_ids": torch.arange(16) % 7, "labels": torch.arange(16) % 7} for _ in range(200)]
left_on = {"debug": "underflow_overflow", "gradient_checkpointing": True}
plain = {"output_dir": sys.argv[1], "max_steps": 16, "report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no"}
settings = TrainingArguments(**plain, **left_on)
trainer = Trainer(model, settings, train_dataset=rows)
trainer.train()
print("steps", trainer.state.global_step)
