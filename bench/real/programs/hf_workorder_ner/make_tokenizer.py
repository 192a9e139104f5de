"""Trains the tokenizer on the words of data/train.jsonl and writes tokenizer/ (kept in the repository)."""
import json

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

MAX_LENGTH = 128


def train_tokenizer(rows):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.Lowercase()
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tok.train_from_iterator((" ".join(r) for r in rows), trainers.WordPieceTrainer(vocab_size=1200, special_tokens=specials))
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(t, tok.token_to_id(t)) for t in ("[CLS]", "[SEP]")]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", model_max_length=MAX_LENGTH
    )


if __name__ == "__main__":
    with open("data/train.jsonl") as f:
        train_tokenizer([json.loads(line)["words"] for line in f]).save_pretrained("tokenizer")
