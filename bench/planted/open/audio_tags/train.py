import os
import time

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, Dataset

with open("config.yaml") as f:
    cfg = yaml.safe_load(f)
if os.environ.get("PLANTED_FIX") == "1":
    cfg["threads"] = 1
cfg["steps"] = int(os.environ.get("PLANTED_STEPS", cfg["steps"]))


class Clips(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(1)
        self.x = torch.randn(2048, 40, 12, generator=g)
        self.y = (self.x.mean((1, 2)) > 0).float()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(40, 160, batch_first=True)
        self.out = nn.Sequential(nn.LayerNorm(160), nn.Linear(160, 1))

    def forward(self, x):
        return self.out(self.gru(x.transpose(1, 2))[0].mean(1)).squeeze(1)


def main():
    torch.set_num_threads(cfg["threads"])
    torch.manual_seed(0)
    loader = DataLoader(Clips(), batch_size=cfg["batch"], shuffle=True)
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["learning_rate"])
    step, start = 0, time.time()
    while step < cfg["steps"]:
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == cfg["steps"]:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
