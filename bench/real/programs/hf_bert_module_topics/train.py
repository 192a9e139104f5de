"""Fine-tune a small BERT so that it tells which standard library package a docstring comes from."""

import ast
import pathlib
import random
import sysconfig

import numpy as np
from datasets import Dataset
from sklearn.metrics import accuracy_score, f1_score
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

PACKAGES = ["asyncio", "email", "unittest", "concurrent", "xml", "tkinter", "distutils", "multiprocessing", "http", "importlib"]


def collect_docstrings():
    root = pathlib.Path(sysconfig.get_paths()["stdlib"])
    texts, labels = [], []
    for label, package in enumerate(PACKAGES):
        for path in sorted((root / package).rglob("*.py")):
            try:
                tree = ast.parse(path.read_text(encoding="utf-8"))
            except (SyntaxError, UnicodeDecodeError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module, ast.AsyncFunctionDef)):
                    doc = ast.get_docstring(node)
                    if doc and len(doc) > 20:
                        texts.append(doc)
                        labels.append(label)
    order = list(range(len(texts)))
    random.Random(0).shuffle(order)
    return [texts[i] for i in order], [labels[i] for i in order]


def build_tokenizer(texts):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=4000, special_tokens=special, show_progress=False))
    tok.post_processor = processors.BertProcessing(("[SEP]", tok.token_to_id("[SEP]")), ("[CLS]", tok.token_to_id("[CLS]")))
    return PreTrainedTokenizerFast(
        tokenizer_object=tok,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=128,
    )


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    preds = np.argmax(logits, axis=-1)
    return {"accuracy": accuracy_score(labels, preds), "macro_f1": f1_score(labels, preds, average="macro")}


def main():
    set_seed(7)
    texts, labels = collect_docstrings()
    tokenizer = build_tokenizer(texts)
    dataset = Dataset.from_dict({"text": texts, "label": labels}).train_test_split(test_size=0.2, seed=1)

    def tokenize(batch):
        return tokenizer(batch["text"], padding="max_length", truncation=True)

    dataset = dataset.map(tokenize, batched=True)
    print(dataset)

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=128,
        num_labels=len(PACKAGES),
    )
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=2,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        learning_rate=5e-4,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        logging_steps=50,
        report_to="none",
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=dataset["train"],
        eval_dataset=dataset["test"],
        processing_class=tokenizer,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
