"""Route customer tickets to one of six desks with a small BERT trained from scratch."""

import os
import random
import time
from dataclasses import dataclass, field

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import nn
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

DESKS = ["billing", "shipping", "returns", "account", "technical", "other"]
TOPIC_WORDS = 40
COMMON_WORDS = 800


@dataclass
class Config:
    seed: int = 13
    n_tickets: int = 4000
    max_length: int = 192
    hidden_size: int = 48
    num_layers: int = 2
    num_heads: int = 4
    batch_size: int = 8
    learning_rate: float = 5e-4
    max_steps: int = 600
    class_weights: list = field(default_factory=lambda: [1.0, 1.0, 1.2, 1.0, 1.0, 0.6])


def make_tickets(n, seed):
    rng = random.Random(seed)
    common = [f"w{i}" for i in range(COMMON_WORDS)]
    texts, labels = [], []
    for _ in range(n):
        label = rng.randrange(len(DESKS))
        length = min(180, max(6, int(rng.lognormvariate(3.4, 0.5))))
        words = []
        for _ in range(length):
            if rng.random() < 0.15:
                words.append(f"{DESKS[label]}{rng.randrange(TOPIC_WORDS)}")
            elif rng.random() < 0.1:
                words.append(f"{rng.choice(DESKS)}{rng.randrange(TOPIC_WORDS)}")
            else:
                words.append(rng.choice(common))
        texts.append(" ".join(words))
        labels.append(label)
    return texts, labels


def build_tokenizer(texts, max_length):
    vocab = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
    for text in texts:
        for word in text.split():
            vocab.setdefault(word, len(vocab))
    backend = Tokenizer(WordLevel(vocab, unk_token="[UNK]"))
    backend.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=max_length,
    )


class TicketDataset(Dataset):
    def __init__(self, texts, labels, tokenizer, max_length):
        padding = "max_length"
        if os.environ.get("PLANTED_FIX") == "1":
            padding = False
        self.encodings = tokenizer(["[CLS] " + t for t in texts], truncation=True, padding=padding, max_length=max_length)
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        return {
            "input_ids": self.encodings["input_ids"][idx],
            "attention_mask": self.encodings["attention_mask"][idx],
            "labels": self.labels[idx],
        }


class WeightedTrainer(Trainer):
    """Trainer with a weighted cross entropy, since "other" is over-represented in production."""

    def __init__(self, *args, class_weights, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_fn = nn.CrossEntropyLoss(weight=torch.tensor(class_weights))
        self.last_loss = None

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = self.loss_fn(outputs.logits, labels)
        self.last_loss = loss.detach()
        return (loss, outputs) if return_outputs else loss


def compute_metrics(pred):
    guess = np.argmax(pred.predictions, axis=-1)
    return {"accuracy": float((guess == pred.label_ids).mean())}


def main():
    cfg = Config()
    set_seed(cfg.seed)
    max_steps = int(os.environ.get("PLANTED_STEPS", cfg.max_steps))

    texts, labels = make_tickets(cfg.n_tickets, cfg.seed)
    split = int(0.97 * len(texts))
    tokenizer = build_tokenizer(texts[:split], cfg.max_length)
    train_set = TicketDataset(texts[:split], labels[:split], tokenizer, cfg.max_length)
    valid_set = TicketDataset(texts[split:], labels[split:], tokenizer, cfg.max_length)

    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=cfg.hidden_size,
            num_hidden_layers=cfg.num_layers,
            num_attention_heads=cfg.num_heads,
            intermediate_size=4 * cfg.hidden_size,
            max_position_embeddings=cfg.max_length,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            num_labels=len(DESKS),
        )
    )

    args = TrainingArguments(
        output_dir=os.path.join(os.path.dirname(os.path.abspath(__file__)), "out"),
        per_device_train_batch_size=cfg.batch_size,
        per_device_eval_batch_size=32,
        learning_rate=cfg.learning_rate,
        warmup_steps=20,
        weight_decay=0.01,
        max_steps=max_steps,
        logging_steps=50,
        save_strategy="no",
        eval_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=cfg.seed,
    )
    trainer = WeightedTrainer(
        model=model,
        args=args,
        train_dataset=train_set,
        eval_dataset=valid_set,
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=compute_metrics,
        class_weights=cfg.class_weights,
    )

    start = time.perf_counter()
    trainer.train()
    elapsed = time.perf_counter() - start

    print({k: round(v, 4) for k, v in trainer.evaluate().items()})
    print(f"{trainer.state.global_step} steps in {elapsed:.2f} s, loss {trainer.last_loss.item():.6f}")


if __name__ == "__main__":
    main()
