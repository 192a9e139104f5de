"""Finds parts, faults, actions and places in maintenance work orders (token classification with the Trainer)."""
import argparse

import numpy as np
from datasets import load_dataset
from seqeval.metrics import f1_score, precision_score, recall_score
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForTokenClassification,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

LABELS = ["O"] + [f"{p}-{k}" for k in ("PART", "FAULT", "ACTION", "PLACE") for p in "BI"]
LABEL_ID = {name: i for i, name in enumerate(LABELS)}
MAX_LENGTH = 128


def tokenize_and_align(batch, tokenizer):
    enc = tokenizer(batch["words"], is_split_into_words=True, truncation=True, padding="max_length", max_length=MAX_LENGTH)
    labels = []
    for i, tags in enumerate(batch["tags"]):
        previous, row = None, []
        for word in enc.word_ids(i):
            # only the first piece of a word is labelled
            row.append(-100 if word is None or word == previous else LABEL_ID[tags[word]])
            previous = word
        labels.append(row)
    enc["labels"] = labels
    return enc


def compute_metrics(prediction):
    predicted = np.argmax(prediction.predictions, axis=-1)
    truth = [[LABELS[l] for l in row if l != -100] for row in prediction.label_ids]
    found = [[LABELS[p] for p, l in zip(ps, ls) if l != -100] for ps, ls in zip(predicted, prediction.label_ids)]
    return {"precision": precision_score(truth, found), "recall": recall_score(truth, found), "f1": f1_score(truth, found)}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=float, default=3)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--output", default="output")
    args = p.parse_args()
    set_seed(1)

    data = load_dataset("json", data_files={"train": "data/train.jsonl", "val": "data/val.jsonl"}, cache_dir=".cache")
    tokenizer = AutoTokenizer.from_pretrained("tokenizer")
    data = data.map(tokenize_and_align, batched=True, fn_kwargs={"tokenizer": tokenizer}, remove_columns=["words", "tags"])

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=512,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        label2id=LABEL_ID,
    )
    model = BertForTokenClassification(config)
    training = TrainingArguments(
        output_dir=args.output,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=args.batch_size,
        per_device_eval_batch_size=32,
        learning_rate=5e-4,
        weight_decay=0.01,
        warmup_steps=40,
        eval_strategy="steps",
        eval_steps=75,
        save_strategy="steps",
        save_steps=150,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="f1",
        logging_steps=25,
        report_to="none",
        seed=1,
    )
    trainer = Trainer(
        model=model,
        args=training,
        train_dataset=data["train"],
        eval_dataset=data["val"],
        processing_class=tokenizer,
        data_collator=default_data_collator,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
