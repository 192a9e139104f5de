"""Large batches in pageable memory, copied while everything waits."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.rows = torch.randn(256, 1024, 1024)

    def __len__(self):
        return 120

    def __getitem__(self, index):
        return self.rows[index % 4 * 64 : index % 4 * 64 + 64]


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.AvgPool1d(16), nn.Flatten(), nn.Linear(1024 * 64, 8)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for x in DataLoader(Rows(), batch_size=None):
        x = x.to("cuda")
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
