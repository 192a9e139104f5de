import time
import json
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

from optics import brightness, centre, chain, straighten
from scenes import draw_scenes
from stream import batched, forever, mapped

STEPS = int(os.environ.get("PLANTED_STEPS", "500"))


def sign_net(kinds):
    return nn.Sequential(
        nn.Conv2d(1, 12, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(24, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(64),
        nn.ReLU(),
        nn.Linear(64, kinds),
    )


def stepper(model, optimizer):
    def step(frames, kinds):
        loss = F.cross_entropy(model(frames), kinds)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def training(batches, step, limit):
    for number, (frames, kinds) in enumerate(batches, start=1):
        yield number, step(frames, kinds)
        if number >= limit:
            return


def main():
    settings = json.loads((Path(__file__).parent / "settings.json").read_text())
    scene, train = settings["scene"], settings["training"]
    began = time.perf_counter()
    torch.manual_seed(settings["seed"])
    rng = np.random.default_rng(settings["seed"])

    frames, kinds = draw_scenes(seed=settings["seed"], **scene)
    transform = chain(straighten(settings["camera"], scene["height"], scene["width"]), brightness(*train["gain"], rng), centre())
    batches = batched(mapped(forever(frames, kinds, rng), transform), train["batch"])

    model = sign_net(scene["kinds"])
    model(torch.zeros(1, 1, scene["height"], scene["width"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=train["lr"])

    for number, loss in training(batches, stepper(model, optimizer), STEPS):
        if number % train["log_every"] == 0:
            print(f"update {number:4d}  loss {loss.item():.6f}", flush=True)
    print(f"{number} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
