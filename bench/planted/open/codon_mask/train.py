"""A student learns masked codons from the labels and from a bigger, fixed teacher."""

import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from data import KEEP, VOCAB, Codons


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.mix = nn.Conv1d(width, width, 7, padding=3, groups=width)
        self.ff = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.out = nn.Linear(width, VOCAB)

    def forward(self, ids):
        h = self.embed(ids)
        h = h + self.mix(h.transpose(1, 2)).transpose(1, 2)
        return self.out(h + self.ff(h))


def distil(student, teacher, ids, labels, heat=2.0):
    mine = student(ids)
    with torch.no_grad():
        theirs = teacher(ids)
    hard = F.cross_entropy(mine.flatten(0, 1), labels.flatten(), ignore_index=KEEP)
    soft = F.kl_div(F.log_softmax(mine / heat, -1), F.softmax(theirs / heat, -1), reduction="batchmean")
    return hard + 0.001 * soft


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    max_steps = int(os.environ.get("PLANTED_STEPS", 400))
    student, teacher = Encoder(24), Encoder(40).eval()
    optimizer = torch.optim.AdamW(student.parameters(), lr=3e-3)
    loader = DataLoader(Codons(), batch_size=24, shuffle=True, drop_last=True)
    start, step = time.time(), 0
    while True:
        for ids, labels in loader:
            optimizer.zero_grad()
            loss = distil(student, teacher, ids, labels)
            loss.backward()
            optimizer.step()
            step += 1
            if step == max_steps:
                print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
                return


if __name__ == "__main__":
    main()
