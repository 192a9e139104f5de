import os
import time

import torch
from store import FeatureService
from torch import nn
from torch.utils.data import DataLoader, Dataset

CUSTOMERS, WIDTH = 4000, 256


class Churn(Dataset):
    def __init__(self, service):
        self.service = service

    def __len__(self):
        return CUSTOMERS

    def __getitem__(self, customer):
        features = torch.from_numpy(self.service.row(customer))
        return features, (features[:8].sum() > 0).float()


class Tower(nn.Module):
    def __init__(self, dims=(WIDTH, 512, 256, 64)):
        super().__init__()
        layers = []
        for a, b in zip(dims, dims[1:]):
            layers += [nn.Linear(a, b), nn.SiLU(), nn.LayerNorm(b)]
        self.body, self.score = nn.Sequential(*layers), nn.Linear(dims[-1], 1)

    def forward(self, x):
        return self.score(self.body(x)).squeeze(-1)


def fit(steps):
    service = FeatureService(CUSTOMERS, WIDTH)
    loader = DataLoader(Churn(service), batch_size=16, shuffle=True)
    net, criterion = Tower(), nn.BCEWithLogitsLoss()
    sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    started, done = time.time(), 0
    while done < steps:
        for features, left in loader:
            loss = criterion(net(features), left)
            loss.backward()
            sgd.step()
            sgd.zero_grad()
            done += 1
            if done >= steps:
                break
    print(f"{done} steps in {time.time() - started:.2f}s, loss {loss.item():.6f}")
    service.close()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(42)
    fit(int(os.environ.get("PLANTED_STEPS", 320)))
