"""Tag order lines with a small BERT and the Hugging Face Trainer."""
import sys

import numpy as np
import torch
import torch.nn.functional as F
from corpus import TAGS, VOCABULARY, OrderLines
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments, set_seed


class PadToLongest:
    def __call__(self, examples):
        longest = max(len(e["input_ids"]) for e in examples)
        ids, masks, labels = [], [], []
        for example in examples:
            missing = longest - len(example["input_ids"])
            ids.append(torch.tensor(example["input_ids"] + [0] * missing))
            masks.append(torch.tensor([1] * len(example["input_ids"]) + [0] * missing))
            labels.append(torch.tensor(example["labels"] + [-100] * missing))
        return {"input_ids": torch.stack(ids), "attention_mask": torch.stack(masks), "labels": torch.stack(labels)}


class TagTrainer(Trainer):
    """Smoothed cross entropy, averaged over the tagged words of a batch."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        total = F.cross_entropy(
            outputs.logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum", label_smoothing=0.05
        )
        loss = total / (labels != -100).sum()
        return (loss, outputs) if return_outputs else loss


def metrics(prediction):
    logits, labels = prediction
    known = labels != -100
    guess = logits.argmax(-1)
    entity = known & (labels > 0)
    return {
        "accuracy": float((guess == labels)[known].mean()),
        "entity_recall": float((guess == labels)[entity].mean()),
        "predicted_other": float((guess == 0)[known].mean()),
    }


def main():
    set_seed(29)
    np.random.seed(29)
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, num_labels=len(TAGS), initializer_range=0.2, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1,
    )
    model = BertForTokenClassification(config)
    arguments = TrainingArguments(
        output_dir="tagger_out",
        per_device_train_batch_size=12,
        per_device_eval_batch_size=16,
        num_train_epochs=3,
        learning_rate=1.5e-3,
        weight_decay=0.05,
        warmup_steps=8,
        lr_scheduler_type="cosine",
        max_grad_norm=1.0,
        logging_steps=5,
        eval_strategy="steps",
        eval_steps=16,
        save_strategy="steps",
        save_steps=24,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        seed=29,
        remove_unused_columns=False,
    )
    trainer = TagTrainer(
        model=model,
        args=arguments,
        train_dataset=OrderLines(296, seed=1),
        eval_dataset=OrderLines(90, seed=2),
        data_collator=PadToLongest(),
        compute_metrics=metrics,
    )
    trainer.train(resume_from_checkpoint=sys.argv[1] if len(sys.argv) > 1 else None)
    print({k: round(v, 5) for k, v in trainer.evaluate().items() if k in ("eval_loss", "eval_accuracy", "eval_entity_recall")})


if __name__ == "__main__":
    main()
