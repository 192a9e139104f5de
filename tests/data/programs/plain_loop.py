"""A plain loop. Arguments: name=value; see the defaults below."""

import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

OPTIONS = {"steps": 30, "workers": 0, "data_ms": 0.0, "epochs": 1, "eval_every": 0, "save": "", "die": "", "dropout": 0.0, "batch": 4}
for argument in sys.argv[1:]:
    name, value = argument.split("=", 1)
    OPTIONS[name] = type(OPTIONS[name])(value)


class Rows(Dataset):
    def __len__(self):
        return OPTIONS["steps"] * OPTIONS["batch"]

    def __getitem__(self, index):
        if OPTIONS["data_ms"]:
            time.sleep(OPTIONS["data_ms"] / 1000 / OPTIONS["batch"])
        return torch.full((16,), float(index % 7)), index % 3


def evaluate(model, rows):
    model.eval()
    with torch.no_grad():
        for x, _ in DataLoader(rows, batch_size=8):
            model(x)
            time.sleep(0.002)
            break
    model.train()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(OPTIONS["dropout"]), nn.Linear(32, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rows = Rows()
    loader = DataLoader(rows, batch_size=OPTIONS["batch"], shuffle=True, num_workers=OPTIONS["workers"])
    done = 0
    for _ in range(OPTIONS["epochs"]):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            done += 1
            print(done, repr(loss.item()), flush=True)
            if OPTIONS["eval_every"] and done % OPTIONS["eval_every"] == 0:
                evaluate(model, rows)
            if OPTIONS["save"] and done % 10 == 0:
                torch.save(model.state_dict(), OPTIONS["save"])
            if OPTIONS["die"] and done == OPTIONS["steps"] // 2:
                if OPTIONS["die"] == "exit":
                    os._exit(7)
                if OPTIONS["die"] == "raise":
                    raise RuntimeError("planted")
                os.kill(os.getpid(), int(OPTIONS["die"]))


if __name__ == "__main__":
    main()
