import os
import time

import torch
from reviews import PAD, Reviews, collate
from torch import nn
from torch.utils.data import DataLoader


class Sentiment(nn.Module):
    def __init__(self, vocab=5000, dim=32, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 2)

    def forward(self, ids):
        mask = (ids != PAD).unsqueeze(-1)
        states, _ = self.gru(self.embed(ids))
        return self.head((states * mask).sum(1) / mask.sum(1))


class Trainer:
    def __init__(self):
        self.model = Sentiment()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)
        self.loader = DataLoader(Reviews(), batch_size=8, shuffle=True, collate_fn=collate)
        self.limit = int(os.environ.get("PLANTED_STEPS", 350))

    def fit(self):
        step, start = 0, time.time()
        while True:
            for ids, labels in self.loader:
                loss = self.training_step(ids, labels)
                step += 1
                if step == self.limit:
                    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
                    return

    def training_step(self, ids, labels):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(ids), labels)
        loss.backward()
        self.optimizer.step()
        return loss


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(3)
    Trainer().fit()
