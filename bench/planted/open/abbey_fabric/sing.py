"""Trains the cantor with Lightning Fabric; sings a line after each epoch."""

import os
import time

import torch
from lightning.fabric import Fabric
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from chants import NOTES, chants
from model import Cantor

LENGTH = 72


@torch.no_grad()
def held_out(model, loader):
    model.eval()
    losses = [cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()) for (ids,) in loader]
    model.train()
    return torch.stack(losses).mean()


@torch.no_grad()
def sing(model, notes=12):
    ids = torch.tensor([[12]])
    for _ in range(notes):
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
    return " ".join(map(str, ids[0].tolist()))


def main():
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.seed_everything(909)
    torch.set_num_threads(1)
    train = DataLoader(chants(2400, LENGTH, 1), 16, shuffle=True, num_workers=0)
    test = DataLoader(chants(128, LENGTH, 2), 32)
    model = Cantor(NOTES, LENGTH)
    optimizer = torch.optim.AdamW(model.parameters(), 6e-4)
    model, optimizer = fabric.setup(model, optimizer)
    train, test = fabric.setup_dataloaders(train, test)
    steps, done, epoch, start = int(os.environ.get("PLANTED_STEPS", 300)), 0, 0, time.perf_counter()
    while done < steps:
        for (ids,) in train:
            loss = cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            fabric.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            if done % 25 == 0:
                fabric.print(f"step {done}: loss {loss.item():.4f}")
            if done == steps:
                break
        epoch += 1
        fabric.print(f"epoch {epoch}: held-out {held_out(model, test).item():.4f}; {sing(model)}")
        fabric.save("cantor.ckpt", {"model": model, "optimizer": optimizer, "epoch": epoch})
    fabric.print(f"{done} steps in {time.perf_counter() - start:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
