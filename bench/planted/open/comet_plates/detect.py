import json
import os
import tempfile
import time
from itertools import islice

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from archive import Share, expose
from feed import CutoutFeed


class CometNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2, stride=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Linear(32 * 36, 1)

    def forward(self, images):
        return self.head(self.body(images).flatten(1)).squeeze(1)


def main():
    with open("experiment.json") as f:
        experiment = json.load(f)
    archive, training = experiment["archive"], experiment["training"]
    torch.set_num_threads(1)
    torch.manual_seed(training["seed"])
    with tempfile.TemporaryDirectory() as root:
        expose(root, archive["plates"], archive["cutouts"], archive["size"], training["seed"])
        share = Share(root, archive["round_trip"])
        feed = CutoutFeed(share, archive["size"], training["batch"], training["streams"], training["seed"])
        net = CometNet()
        optimizer = torch.optim.Adam(net.parameters(), lr=training["lr"])
        steps = int(os.environ.get("PLANTED_STEPS", training["steps"]))
        start = time.time()
        for step, (images, comet) in enumerate(islice(feed, steps)):
            loss = binary_cross_entropy_with_logits(net(images), comet)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}")
        print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
