import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import TensorDataset
from transformers import Trainer, TrainingArguments, set_seed

STEPS = int(os.environ.get("PLANTED_STEPS", 200))
INTERVAL = 500 if os.environ.get("PLANTED_FIX") == "1" else 2


class ReefNet(nn.Module):
    """Which of 30 corals lives at a place, from 400 measurements."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(400, 1200), nn.ReLU(), nn.Linear(1200, 1200), nn.ReLU(), nn.Linear(1200, 30))

    def forward(self, water, labels=None):
        logits = self.net(water)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def gather(rows):
    water, coral = zip(*rows)
    return {"water": torch.stack(water), "labels": torch.stack(coral)}


def places(n=1500):
    coral = torch.randint(0, 30, (n,))
    return TensorDataset(torch.randn(n, 400) + 0.3 * torch.randn(30, 400)[coral], coral)


if __name__ == "__main__":
    torch.set_num_threads(1)
    set_seed(12)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            ReefNet(),
            TrainingArguments(
                folder,
                max_steps=STEPS,
                per_device_train_batch_size=24,
                learning_rate=5e-4,
                logging_steps=25,
                save_strategy="steps",
                save_steps=INTERVAL,
                save_total_limit=2,
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
            ),
            train_dataset=places(),
            data_collator=gather,
        )
        began = time.time()
        out = trainer.train()
        print(f"{STEPS} steps in {time.time() - began:.2f}s, loss {out.training_loss:.6f}")
