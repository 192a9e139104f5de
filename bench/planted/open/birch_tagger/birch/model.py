import torch
from torch import nn


class Tagger(nn.Module):
    """A small recurrent tagger on top of fixed word vectors."""

    def __init__(self, vocabulary, embed, hidden, tags):
        super().__init__()
        vectors = torch.randn(vocabulary, embed, generator=torch.Generator().manual_seed(99)) * 0.3
        self.words = nn.Embedding.from_pretrained(vectors, freeze=True)
        self.rnn = nn.LSTM(embed, hidden, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(2 * hidden, tags)

    def forward(self, tokens):
        states, _ = self.rnn(self.words(tokens))
        return self.tags(states)
