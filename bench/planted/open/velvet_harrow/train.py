import time
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from encode import TicketDataset, train_tokenizer
from tickets import QUEUES, make_tickets

STEPS = int(os.environ.get("PLANTED_STEPS", "300"))


@dataclass
class Experiment:
    seed: int = 23
    train_size: int = 1600
    dev_size: int = 200
    vocab_size: int = 1400
    max_length: int = 128
    hidden: int = 64
    layers: int = 2
    heads: int = 4


class PrintLoss(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(f"step {state.global_step:4d}  loss {float(logs['loss']):.6f}", flush=True)
        elif logs and "eval_loss" in logs:
            print(f"eval {state.global_step:4d}  loss {float(logs['eval_loss']):.6f}  acc {logs['eval_accuracy']:.3f}")


def compute_metrics(prediction):
    guess = np.argmax(prediction.predictions, axis=-1)
    return {"accuracy": float((guess == prediction.label_ids).mean())}


def build_model(exp, tokenizer):
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=exp.hidden,
        num_hidden_layers=exp.layers,
        num_attention_heads=exp.heads,
        intermediate_size=4 * exp.hidden,
        max_position_embeddings=exp.max_length,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=len(QUEUES),
        pad_token_id=tokenizer.pad_token_id,
    )
    return BertForSequenceClassification(config)


def main():
    exp = Experiment()
    set_seed(exp.seed)
    train_texts, train_labels = make_tickets(exp.train_size, seed=exp.seed)
    dev_texts, dev_labels = make_tickets(exp.dev_size, seed=exp.seed + 1)
    tokenizer = train_tokenizer(train_texts, exp.vocab_size, exp.max_length)
    train_set = TicketDataset(train_texts, train_labels, tokenizer)
    dev_set = TicketDataset(dev_texts, dev_labels, tokenizer)

    args = TrainingArguments(
        output_dir=str(Path(__file__).parent / "out"),
        max_steps=STEPS,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        learning_rate=1e-3,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=20,
        weight_decay=0.01,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=20,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=exp.seed,
    )
    trainer = Trainer(
        model=build_model(exp, tokenizer),
        args=args,
        train_dataset=train_set,
        eval_dataset=dev_set,
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=compute_metrics,
        callbacks=[PrintLoss()],
    )
    began = time.perf_counter()
    result = trainer.train()
    print(f"{result.global_step} steps in {time.perf_counter() - began:.2f}s, loss {result.training_loss:.6f}")


if __name__ == "__main__":
    main()
