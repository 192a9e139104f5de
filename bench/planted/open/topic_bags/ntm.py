import torch
from torch import nn


class NeuralTopics(nn.Module):
    """Variational topic model."""

    def __init__(self, words, topics=24, width=128):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(words, width), nn.Softplus())
        self.mean, self.logvar = nn.Linear(width, topics), nn.Linear(width, topics)
        self.decode = nn.Linear(topics, words, bias=False)

    def forward(self, bow):
        h = self.encode(bow)
        mean, logvar = self.mean(h), self.logvar(h)
        theta = torch.softmax(mean + torch.randn_like(mean) * (0.5 * logvar).exp(), -1)
        fit = -(bow * torch.log_softmax(self.decode(theta), -1)).sum(-1)
        kl = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(-1)
        return (fit + 0.05 * kl).mean()
