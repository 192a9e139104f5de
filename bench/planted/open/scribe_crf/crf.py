"""Linear-chain conditional random field: negative log likelihood by the forward algorithm, best path by Viterbi."""

import os

import torch
from torch import nn

VECTOR = os.environ.get("PLANTED_FIX") == "1"


class ChainCRF(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.transitions = nn.Parameter(0.05 * torch.randn(classes, classes))
        self.first = nn.Parameter(torch.zeros(classes))

    def path_score(self, scores, tags):
        emitted = scores.gather(2, tags[..., None]).squeeze(-1).sum(1)
        return emitted + self.transitions[tags[:, :-1], tags[:, 1:]].sum(1) + self.first[tags[:, 0]]

    def advance(self, alpha, emitted):
        """The forward variables of the next word, class by class."""
        if VECTOR:
            return torch.logsumexp(alpha[:, :, None] + self.transitions, 1) + emitted
        columns = []
        for tag in range(self.classes):
            reach = alpha + self.transitions[:, tag]
            columns.append(torch.logsumexp(reach, 1) + emitted[:, tag])
        return torch.stack(columns, 1)

    def log_partition(self, scores):
        alpha = self.first + scores[:, 0]
        for t in range(1, scores.shape[1]):
            alpha = self.advance(alpha, scores[:, t])
        return torch.logsumexp(alpha, 1)

    def forward(self, scores, tags):
        return self.log_partition(scores) - self.path_score(scores, tags)

    @torch.no_grad()
    def viterbi(self, scores):
        best, back = self.first + scores[:, 0], []
        for t in range(1, scores.shape[1]):
            value, at = (best[:, :, None] + self.transitions).max(1)
            best = value + scores[:, t]
            back.append(at)
        path = [best.argmax(1)]
        for at in reversed(back):
            path.append(at.gather(1, path[-1][:, None]).squeeze(1))
        return torch.stack(path[::-1], 1)
