"""A small sentence encoder that matches function signatures with the first lines of their docstrings."""

import ast
import pathlib
import random
import sysconfig

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    models,
)
from sentence_transformers.evaluation import InformationRetrievalEvaluator
from sentence_transformers.losses import MultipleNegativesRankingLoss
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors, trainers
from tokenizers import models as tok_models
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

MAX_PAIRS = 5000


def collect_pairs():
    root = pathlib.Path(sysconfig.get_paths()["stdlib"])
    pairs = []
    for path in sorted(root.rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                doc = ast.get_docstring(node)
                if doc and 20 < len(doc) < 2000:
                    arguments = ", ".join(a.arg for a in node.args.args)
                    pairs.append((f"{path.stem} {node.name}({arguments})".replace("_", " "), doc))
    random.Random(4).shuffle(pairs)
    return pairs[:MAX_PAIRS]


def build_encoder(texts, folder="encoder"):
    tok = Tokenizer(tok_models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=6000, special_tokens=special, show_progress=False))
    tok.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tok,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=96,
    )
    config = BertConfig(
        vocab_size=len(fast),
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=128,
    )
    BertModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    word = models.Transformer(folder, max_seq_length=96)
    pool = models.Pooling(config.hidden_size, pooling_mode="mean")
    return SentenceTransformer(modules=[word, pool], device="cpu")


def main():
    pairs = collect_pairs()
    print(len(pairs), "pairs")
    model = build_encoder([p for pair in pairs for p in pair])

    held_out, train = pairs[:600], pairs[600:]
    queries = {str(i): q for i, (q, _) in enumerate(held_out[:300])}
    corpus = {str(i): d for i, (_, d) in enumerate(held_out)}
    relevant = {qid: {qid} for qid in queries}
    evaluator = InformationRetrievalEvaluator(queries, corpus, relevant, name="docs")

    train_dataset = Dataset.from_dict({"anchor": [q for q, _ in train], "positive": [d for _, d in train]})
    args = SentenceTransformerTrainingArguments(
        output_dir="out",
        num_train_epochs=2,
        per_device_train_batch_size=32,
        learning_rate=5e-4,
        warmup_steps=20,
        eval_strategy="steps",
        eval_steps=50,
        save_strategy="steps",
        save_steps=100,
        save_total_limit=2,
        logging_steps=20,
        report_to="none",
        use_cpu=True,
        seed=0,
    )
    trainer = SentenceTransformerTrainer(
        model=model,
        args=args,
        train_dataset=train_dataset,
        loss=MultipleNegativesRankingLoss(model),
        evaluator=evaluator,
    )
    trainer.train()
    print(evaluator(model))


if __name__ == "__main__":
    main()
