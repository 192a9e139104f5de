"""Fine-tune a small BERT to route permit requests."""

import os
import tempfile
import time

from data import DEPARTMENTS, VOCAB, Requests
from metrics import compute_metrics
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

FIXED = os.environ.get("PLANTED_FIX") == "1"


def build_model() -> BertForSequenceClassification:
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=len(VOCAB) + 2,
            hidden_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=288,
            max_position_embeddings=64,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            num_labels=len(DEPARTMENTS),
        )
    )


def build_arguments(out: str) -> TrainingArguments:
    return TrainingArguments(
        output_dir=out,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=128,
        learning_rate=5e-4,
        lr_scheduler_type="constant",
        max_steps=int(os.environ.get("PLANTED_STEPS", 160)),
        eval_strategy="steps",
        eval_steps=80 if FIXED else 10,
        logging_steps=40,
        save_strategy="no",
        optim="adamw_torch_fused",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=5,
    )


def main() -> None:
    set_seed(5)
    train, held_out = Requests(4000, 32, seed=1), Requests(800, 32, seed=2)
    with tempfile.TemporaryDirectory() as out:
        trainer = Trainer(
            model=build_model(),
            args=build_arguments(out),
            train_dataset=train,
            eval_dataset=held_out,
            compute_metrics=compute_metrics,
        )
        start = time.perf_counter()
        result = trainer.train()
        print(f"{result.global_step} steps in {time.perf_counter() - start:.2f} s, loss {result.training_loss:.6f}")


if __name__ == "__main__":
    main()
