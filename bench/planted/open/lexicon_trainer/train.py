import os
import tempfile
import time

import torch
from lexicon import KEEP, Dictations
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(997, 64)
        self.rnn = nn.GRU(64, 96, batch_first=True)
        self.top = nn.Linear(96, 5)

    def forward(self, input_ids, labels=None):
        _, h = self.rnn(self.embed(input_ids))
        logits = self.top(h[-1])
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


if __name__ == "__main__":
    torch.set_num_threads(1)
    set_seed(5)
    steps = int(os.environ.get("PLANTED_STEPS", 300))
    with tempfile.TemporaryDirectory() as out:
        arguments = TrainingArguments(
            output_dir=out,
            max_steps=steps,
            per_device_train_batch_size=16,
            dataloader_num_workers=2,
            dataloader_persistent_workers=KEEP,
            learning_rate=1e-3,
            save_strategy="no",
            logging_steps=50,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(model=Recogniser(), args=arguments, train_dataset=Dictations())
        begin = time.time()
        result = trainer.train()
        print(f"{steps} steps in {time.time() - begin:.2f}s, loss {result.training_loss:.6f}")
