import torch
from crf import ChainCRF
from torch import nn


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, 2 * width, 3, padding=1)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return x + nn.functional.glu(self.conv(self.norm(x)), 1)


class Tagger(nn.Module):
    def __init__(self, vocabulary, classes, width=80):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.layers = nn.Sequential(*[Gated(width) for _ in range(3)])
        self.emit = nn.Linear(width, classes)
        self.crf = ChainCRF(classes)

    def forward(self, words, labels=None):
        h = self.layers(self.words(words).transpose(1, 2)).transpose(1, 2)
        scores = self.emit(h)
        if labels is None:
            return {"logits": scores}
        loss = self.crf(scores, labels).mean() / labels.shape[1]
        return {"loss": loss, "logits": scores}
