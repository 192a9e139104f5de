import os

from corpus import CUES, PLAIN
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from torch import Tensor, tensor
from transformers import PreTrainedTokenizerFast

FIXED = os.environ.get("PLANTED_FIX") == "1"


def build_tokenizer() -> PreTrainedTokenizerFast:
    words = ["[PAD]", "[UNK]", "[CLS]", *sorted({w for cue in CUES.values() for w in cue} | set(PLAIN))]
    raw = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    raw.pre_tokenizer = Whitespace()
    raw.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]")


class Collator:
    def __init__(self, tokenizer: PreTrainedTokenizerFast, max_length: int) -> None:
        self.tokenizer, self.max_length = tokenizer, max_length

    def __call__(self, rows: list[tuple[str, int]]) -> dict[str, Tensor]:
        texts, labels = zip(*rows)
        batch = self.tokenizer(
            list(texts),
            padding="longest" if FIXED else "max_length",
            truncation=True,
            max_length=self.max_length,
            return_token_type_ids=False,
            return_tensors="pt",
        )
        return {**batch, "labels": tensor(labels)}
