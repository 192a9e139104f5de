"""Saves beside the checkpoint and moves the file into its place, on a disk that is slow to do so; moves a file of its own as well."""

import os
import sys
import time

_replace = os.replace


def slow_replace(*args, **kwargs):
    time.sleep(0.02)
    return _replace(*args, **kwargs)


os.replace = slow_replace

import torch  # noqa: E402
from torch import nn  # noqa: E402


def main(folder):
    torch.set_num_threads(1)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).square().mean().backward()
        optimizer.step()
        if step % 10 == 9:
            torch.save(model.state_dict(), os.path.join(folder, "part.pt"))
            os.replace(os.path.join(folder, "part.pt"), os.path.join(folder, "model.pt"))
        if step % 10 == 5:
            with open(os.path.join(folder, "part.txt"), "w") as file:
                file.write("note")
            os.replace(os.path.join(folder, "part.txt"), os.path.join(folder, "note.txt"))


if __name__ == "__main__":
    main(sys.argv[1])
