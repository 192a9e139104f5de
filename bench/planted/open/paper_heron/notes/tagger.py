"""The model, and a Trainer that remembers its latest loss."""

import torch
from transformers import BertConfig, BertForTokenClassification, Trainer


def build(words: int, length: int, tags: int, width: int, layers: int, heads: int) -> BertForTokenClassification:
    config = BertConfig(
        vocab_size=words, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=3 * width, max_position_embeddings=length, num_labels=tags,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return BertForTokenClassification(config)


class TagTrainer(Trainer):
    latest = float("nan")

    def training_step(self, *args, **kwargs) -> torch.Tensor:
        loss = super().training_step(*args, **kwargs)
        self.latest = loss.item()
        return loss
