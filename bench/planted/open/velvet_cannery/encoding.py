"""From words to the batches that the tagger eats."""

import os
import random

from kitchen import WORDS, recipe
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import Dataset
from transformers import DataCollatorForTokenClassification, PreTrainedTokenizerFast

FIXED = os.environ.get("PLANTED_FIX") == "1"


def make_tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {word: number for number, word in enumerate(["<pad>", "<unk>", *WORDS])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", unk_token="<unk>", model_max_length=512)


class Recipes(Dataset):
    def __init__(self, count: int, tokenizer: PreTrainedTokenizerFast, seed: int) -> None:
        rng = random.Random(seed)
        self.rows = []
        for _ in range(count):
            words, tags = recipe(rng)
            self.rows.append({"input_ids": tokenizer(words, is_split_into_words=True)["input_ids"], "labels": tags})

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict[str, list[int]]:
        return dict(self.rows[number])


def make_collator(tokenizer: PreTrainedTokenizerFast) -> DataCollatorForTokenClassification:
    if FIXED:
        return DataCollatorForTokenClassification(tokenizer, pad_to_multiple_of=8)
    else:
        return DataCollatorForTokenClassification(tokenizer, pad_to_multiple_of=256)
