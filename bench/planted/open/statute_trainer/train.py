import os
import tempfile
import time
from dataclasses import dataclass

import torch
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments, set_seed


@dataclass
class ModelArguments:
    width: int = 48
    layers: int = 2
    heads: int = 6
    context: int = 640
    attention: str = "eager"


class Statutes(torch.utils.data.Dataset):
    def __init__(self, n, context):
        self.ids = (torch.randint(0, 4, (n, context)).cumsum(1)) % 256

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def build(m):
    config = GPT2Config(vocab_size=256, n_positions=m.context, n_embd=m.width, n_layer=m.layers, n_head=m.heads, use_cache=False)
    config.resid_pdrop = config.attn_pdrop = config.embd_pdrop = 0.0
    kernel = "sdpa" if os.environ.get("PLANTED_FIX") == "1" else m.attention
    return GPT2LMHeadModel._from_config(config, attn_implementation=kernel)


def main():
    (m,) = HfArgumentParser(ModelArguments).parse_args_into_dataclasses()
    torch.set_num_threads(1)
    set_seed(51)
    steps = int(os.environ.get("PLANTED_STEPS", 110))
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder,
            max_steps=steps,
            per_device_train_batch_size=2,
            learning_rate=5e-4,
            logging_steps=20,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(build(m), args, train_dataset=Statutes(300, m.context))
        t = time.time()
        loss = trainer.train().training_loss
        print(f"{steps} steps in {time.time() - t:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
