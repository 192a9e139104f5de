import os
import tempfile
import time

import torch
from images import Retinas
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class RetinaNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()
        )
        self.classify = nn.Linear(32, 4)

    def forward(self, pixels, labels=None):
        logits = self.classify(self.features(pixels).mean((2, 3)))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def main():
    torch.set_num_threads(1)
    set_seed(4)
    steps = int(os.environ.get("PLANTED_STEPS", 600))
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            out,
            max_steps=steps,
            per_device_train_batch_size=12,
            optim="sgd",
            learning_rate=0.01,
            logging_steps=100,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(RetinaNet(), args, train_dataset=Retinas())
        start = time.time()
        done = trainer.train()
        print(f"{steps} steps in {time.time() - start:.2f}s, loss {done.training_loss:.6f}")


if __name__ == "__main__":
    main()
