"""Samples of unequal length that their data set pads to one width."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WIDTH, PAD = 64, 1
torch.manual_seed(0)
torch.set_num_threads(1)


class Texts(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        ids = torch.full((WIDTH,), PAD)
        ids[: 3 + index % 20] = torch.arange(2, 5 + index % 20)
        return {"input_ids": ids, "attention_mask": ids != PAD, "labels": torch.where(ids == PAD, -100, ids), "name": f"text {index}"}


model = nn.Sequential(nn.Embedding(32, 8), nn.Linear(8, 32))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _epoch in range(3):
    for batch in DataLoader(Texts(), batch_size=8, shuffle=True):
        loss = nn.functional.cross_entropy(model(batch["input_ids"]).flatten(0, 1), batch["labels"].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
