"""Train a tiny BERT to tell the standard library's packages apart by their docstrings."""

import argparse

import numpy as np
import torch
from data import PACKAGES, load_data
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


def compute_metrics(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, axis=-1) == prediction.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=float, default=10)
    parser.add_argument("--max-length", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output-dir", default="runs")
    args = parser.parse_args()

    set_seed(args.seed)
    torch.set_num_threads(1)
    train_set, eval_set, tokenizer, collate = load_data(length=args.max_length)
    print(f"{len(train_set)} docstrings to train on, {len(eval_set)} held out, {len(tokenizer)} words")

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=args.max_length,
        num_labels=len(PACKAGES),
    )
    training_args = TrainingArguments(
        output_dir=args.output_dir,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=1,
        learning_rate=2e-3,
        warmup_steps=50,
        weight_decay=0.01,
        eval_strategy="steps",
        eval_steps=20,
        save_strategy="epoch",
        save_total_limit=1,
        logging_steps=20,
        report_to="none",
        disable_tqdm=True,
        seed=args.seed,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=training_args,
        train_dataset=train_set,
        eval_dataset=eval_set,
        data_collator=collate,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())
    trainer.save_model(f"{args.output_dir}/final")


if __name__ == "__main__":
    main()
