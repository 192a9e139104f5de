"""Routes support tickets to a queue with a small DistilBERT trained from scratch."""
import os
import random
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch.utils.data import Dataset
from transformers import (DistilBertConfig, DistilBertForSequenceClassification,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)
from transformers.utils import logging as hf_logging

warnings.filterwarnings("ignore")
hf_logging.set_verbosity_error()

STEPS = int(os.environ.get("PLANTED_STEPS", 200))
MAX_LEN = 128
BATCH = 16
SEED = 13

QUEUES = {
    "billing": "invoice charge refund card statement vat payment receipt overdue euro".split(),
    "shipping": "parcel courier tracking delivery address depot delayed customs box label".split(),
    "account": "password login email reset username locked profile verify token session".split(),
    "hardware": "battery screen hinge charger fan keyboard port cable broken noise".split(),
    "returns": "return exchange size warranty defect voucher replacement pickup wrong item".split(),
}
FILLER = ("hello i would like to know why the and my has been since last week please help with this "
          "it is not working as expected thank you for your time regards order number we have tried "
          "again but nothing changed could someone call me back today or tomorrow").split()


def write_ticket(rng, queue):
    """A ticket is mostly filler with a few words of its queue and sometimes of another one."""
    length = int(min(110, max(6, rng.gauss(24, 8))))
    words = []
    other = rng.choice(list(QUEUES))
    for _ in range(length):
        r = rng.random()
        if r < 0.16:
            words.append(rng.choice(QUEUES[queue]))
        elif r < 0.22:
            words.append(rng.choice(QUEUES[other]))
        elif r < 0.26:
            words.append(str(rng.randint(100, 999)))
        else:
            words.append(rng.choice(FILLER))
    return " ".join(words)


def make_tickets(n, seed):
    rng = random.Random(seed)
    names = list(QUEUES)
    weights = [5, 4, 3, 2, 1]
    texts, labels = [], []
    for _ in range(n):
        y = rng.choices(range(len(names)), weights)[0]
        texts.append(write_ticket(rng, names[y]))
        labels.append(y)
    return texts, labels


def build_tokenizer():
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocab = list(specials)
    for words in list(QUEUES.values()) + [FILLER, [str(i) for i in range(100, 1000)]]:
        vocab += [w for w in words if w not in vocab]
    tok = Tokenizer(models.WordLevel({w: i for i, w in enumerate(vocab)}, unk_token="[UNK]"))
    tok.normalizer = normalizers.Lowercase()
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]",
                                   cls_token="[CLS]", sep_token="[SEP]",
                                   model_input_names=["input_ids", "attention_mask"])


class TicketDataset(Dataset):
    def __init__(self, texts, labels, tokenizer):
        pad = "max_length"
        if os.environ.get("PLANTED_FIX") == "1":
            pad = False
        self.encodings = tokenizer(texts, truncation=True, padding=pad, max_length=MAX_LEN)
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        item = {k: v[i] for k, v in self.encodings.items()}
        item["labels"] = self.labels[i]
        return item


class WeightedTrainer(Trainer):
    """Cross entropy with class weights; the queues are not equally busy."""

    def __init__(self, *args, class_weights, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights
        self.last_loss = None

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs.logits, labels, weight=self.class_weights)
        if model.training:
            self.last_loss = loss.detach()
        return (loss, outputs) if return_outputs else loss


def accuracy(pred):
    return {"accuracy": float((np.argmax(pred.predictions, axis=-1) == pred.label_ids).mean())}


def main():
    set_seed(SEED)
    tokenizer = build_tokenizer()
    train_texts, train_labels = make_tickets(4000, seed=1)
    test_texts, test_labels = make_tickets(200, seed=2)
    train_set = TicketDataset(train_texts, train_labels, tokenizer)
    test_set = TicketDataset(test_texts, test_labels, tokenizer)

    counts = torch.bincount(torch.tensor(train_labels), minlength=len(QUEUES)).float()
    weights = counts.sum() / (len(QUEUES) * counts)

    config = DistilBertConfig(vocab_size=len(tokenizer), dim=128, hidden_dim=512, n_layers=2, n_heads=4,
                              max_position_embeddings=256, dropout=0.0, attention_dropout=0.0,
                              seq_classif_dropout=0.0, num_labels=len(QUEUES), pad_token_id=0)
    model = DistilBertForSequenceClassification(config)

    args = TrainingArguments(
        output_dir="out", max_steps=STEPS, per_device_train_batch_size=BATCH, per_device_eval_batch_size=64,
        learning_rate=1e-3, warmup_steps=20, weight_decay=0.01, logging_steps=25, save_strategy="no",
        eval_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True, seed=SEED)
    trainer = WeightedTrainer(model=model, args=args, train_dataset=train_set, eval_dataset=test_set,
                              processing_class=tokenizer, compute_metrics=accuracy, class_weights=weights)
    result = trainer.train()
    scores = trainer.evaluate()
    print(f"test accuracy {scores['eval_accuracy']:.3f}")
    print(f"{trainer.state.global_step} steps in {result.metrics['train_runtime']:.2f} s, "
          f"loss {trainer.last_loss.item():.6f}")


if __name__ == "__main__":
    main()
