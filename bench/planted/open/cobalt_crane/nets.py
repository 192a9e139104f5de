import torch
from torch import nn
import torch.nn.functional as F


class ReviewEncoder(nn.Module):
    def __init__(self, vocab, width, dim, layers, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.narrow = nn.Linear(width, dim)
        self.layers = nn.ModuleList([nn.GRU(dim, dim // 2, batch_first=True, bidirectional=True) for _ in range(layers)])
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        h = self.narrow(self.embed(ids))
        for layer in self.layers:
            h = h + layer(h)[0]
        return self.head(h.mean(1))


class BagStudent(nn.Module):
    def __init__(self, buckets, dim, classes):
        super().__init__()
        self.buckets = buckets
        self.bag = nn.Embedding(buckets, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, classes))

    def forward(self, ids):
        return self.mlp(self.bag(ids % self.buckets).mean(1))


class Pair(nn.Module):
    """A frozen teacher and the student that learns from it and from the labels."""

    def __init__(self, teacher, student, temperature=2.0, alpha=0.5):
        super().__init__()
        self.teacher = teacher.eval().requires_grad_(False)
        self.student = student
        self.temperature = temperature
        self.alpha = alpha

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, ids, stars):
        logits = self.student(ids)
        with torch.no_grad():
            soft = F.softmax(self.teacher(ids) / self.temperature, dim=-1)
        hard = F.cross_entropy(logits, stars)
        match = F.kl_div(F.log_softmax(logits / self.temperature, dim=-1), soft, reduction="batchmean")
        return self.alpha * hard + (1 - self.alpha) * self.temperature**2 * match
