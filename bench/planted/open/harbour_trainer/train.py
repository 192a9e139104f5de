import os
import tempfile
import time

import torch
from callbacks import WHICH, WatchDrift
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed


class Berths(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.tide = torch.randn(n, 300, generator=g)
        self.late = (self.tide[:, :4].sum(1) > 0).long()

    def __len__(self):
        return len(self.tide)

    def __getitem__(self, i):
        return {"tide": self.tide[i], "labels": self.late[i]}


class Harbour(nn.Module):
    def __init__(self):
        super().__init__()
        self.ships = nn.Sequential(nn.Linear(300, 400), nn.ReLU(), nn.Linear(400, 2))

    def forward(self, tide, labels=None):
        logits = self.ships(tide)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def main():
    torch.set_num_threads(1)
    set_seed(66)
    steps = int(os.environ.get("PLANTED_STEPS", 300))
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder,
            max_steps=steps,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=16,
            eval_strategy="steps",
            eval_steps=1000 if WHICH == "2" else 5,
            learning_rate=1e-3,
            logging_steps=100,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(Harbour(), args, train_dataset=Berths(3000, 1), eval_dataset=Berths(640, 2), callbacks=[WatchDrift()])
        t = time.time()
        loss = trainer.train().training_loss
        print(f"{steps} steps in {time.time() - t:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
