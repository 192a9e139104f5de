"""The model and the trainer that routes messages."""

import time
from configparser import SectionProxy

import torch
from messages import INTENTS, PAD
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback


def make_model(settings: SectionProxy, words: int) -> BertForSequenceClassification:
    config = BertConfig(
        vocab_size=words,
        hidden_size=settings.getint("width"),
        num_hidden_layers=settings.getint("layers"),
        num_attention_heads=settings.getint("heads"),
        intermediate_size=4 * settings.getint("width"),
        max_position_embeddings=settings.getint("positions"),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=len(INTENTS),
        pad_token_id=PAD,
    )
    return BertForSequenceClassification(config)


def shares_right(prediction) -> dict[str, float]:
    scores, labels = prediction
    return {"right": float((scores.argmax(-1) == labels).mean())}


class DeskTrainer(Trainer):
    """A trainer that remembers the loss of its last step."""

    last_loss = float("nan")

    def training_step(self, *args, **kwargs) -> torch.Tensor:
        loss = super().training_step(*args, **kwargs)
        self.last_loss = loss.item()
        return loss


class Watch(TrainerCallback):
    """Time of the loop, and the figures as plain lines."""

    def __init__(self) -> None:
        self.began = self.seconds = 0.0

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self.began = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs) -> None:
        self.seconds = time.perf_counter() - self.began

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        if logs:
            print(state.global_step, {name: round(float(value), 4) for name, value in logs.items()}, flush=True)
