from torch import nn


class CharConv(nn.Module):
    """Causal convolutions over characters."""

    def __init__(self, vocab, width=32, layers=1):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.convs = nn.ModuleList(nn.Conv1d(width, width, 3, padding=2) for _ in range(layers))
        self.out = nn.Linear(width, vocab)

    def forward(self, ids):
        h = self.embed(ids).transpose(1, 2)
        for conv in self.convs:
            h = h + conv(h)[..., : h.shape[-1]].relu()
        return self.out(h.transpose(1, 2))
