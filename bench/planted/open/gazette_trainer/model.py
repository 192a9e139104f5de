import torch
from torch import nn
from transformers.modeling_outputs import SequenceClassifierOutput

from notices import PAD, TOPICS, WORDS


class NoticeReader(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.words = nn.Embedding(WORDS, settings.width, padding_idx=PAD)
        self.places = nn.Embedding(settings.positions, settings.width)
        layer = nn.TransformerEncoderLayer(
            settings.width, settings.heads, 4 * settings.width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, settings.layers, enable_nested_tensor=False)
        self.topic = nn.Linear(settings.width, TOPICS)

    def forward(self, input_ids, attention_mask, labels=None):
        h = self.words(input_ids) + self.places.weight[: input_ids.shape[1]]
        h = self.body(h, src_key_padding_mask=attention_mask == 0)
        real = attention_mask[:, :, None].float()
        logits = self.topic((h * real).sum(1) / real.sum(1))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)
