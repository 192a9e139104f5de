"""Fine-tunes a small BERT from scratch on lock keepers' notes."""

import os
import time

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments, set_seed

from locks import TOPICS, WORDS, Notes

FIX = os.environ.get("PLANTED_FIX")


class Stopwatch(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def accuracy(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, 1) == prediction.label_ids).mean())}


def arguments(steps: int) -> TrainingArguments:
    return TrainingArguments(
        output_dir="canal-bert",
        max_steps=steps,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        learning_rate=5e-4,
        lr_scheduler_type="cosine",
        logging_steps=20,
        eval_strategy="no" if FIX == "1" else "steps",
        eval_steps=10,
        save_strategy="no" if FIX == "2" else "steps",
        save_steps=3,
        save_total_limit=2,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        seed=3,
    )


def main() -> None:
    set_seed(3)
    torch.set_num_threads(1)
    steps = int(os.environ.get("PLANTED_STEPS", 300))
    config = BertConfig(
        vocab_size=max(12000, len(WORDS)),
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=40,
        num_labels=len(TOPICS),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    watch = Stopwatch()
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments(steps),
        train_dataset=Notes(3000, 1),
        eval_dataset=Notes(640, 2),
        compute_metrics=accuracy,
        callbacks=[watch],
    )
    output = trainer.train()
    print(f"{steps} steps in {watch.seconds:.3f}s, loss {output.training_loss:.5f}")


if __name__ == "__main__":
    main()
