import argparse
import os
import tempfile
import time

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Questions(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.answers = torch.randint(0, 4, (count,), generator=g)
        self.ids = torch.randint(10, 800, (count, 40), generator=g)
        self.ids[:, 1] = self.answers

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.answers[i]}


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--max_steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 250)))
    p.add_argument("--eval_steps", type=int, default=5)
    p.add_argument("--batch", type=int, default=8)
    return p.parse_args()


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    cli = arguments()
    often = cli.eval_steps if os.environ.get("PLANTED_FIX") != "1" else 1000
    torch.set_num_threads(1)
    set_seed(21)
    config = BertConfig(vocab_size=800, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128, num_labels=4)
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder,
            max_steps=cli.max_steps,
            per_device_train_batch_size=cli.batch,
            per_device_eval_batch_size=cli.batch,
            eval_strategy="steps",
            eval_steps=often,
            learning_rate=3e-4,
            save_strategy="no",
            logging_steps=50,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(
            BertForSequenceClassification(config),
            args,
            train_dataset=Questions(1200, 1),
            eval_dataset=Questions(240, 2),
            compute_metrics=accuracy,
        )
        t = time.time()
        loss = trainer.train().training_loss
        print(f"{cli.max_steps} steps in {time.time() - t:.2f}s, loss {loss:.6f}")


main()
