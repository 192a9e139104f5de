"""Which cover is most common on a tile?"""

import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from knobs import knobs
from mixer import Mixer
from tally import Tally
from tiles import Tiles


def forever(loader):
    while True:
        yield from loader


def main():
    k = knobs()
    torch.manual_seed(k.seed)
    tiles = Tiles(k.tiles, k.side, k.seed)
    loader = DataLoader(tiles, k.batch, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(k.seed))
    model = Mixer(k.side, k.patch, k.width, k.depth)
    optimizer = torch.optim.SGD(model.parameters(), lr=k.lr * 20, momentum=0.9, nesterov=True)
    tally, value, began = Tally(), float("nan"), time.time()
    for step, (images, labels) in enumerate(forever(loader), 1):
        logits = model(images)
        loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        value = loss.item()
        tally.add(value, (logits.argmax(-1) == labels).sum().item(), len(labels))
        print(tally.line(step), flush=True)
        if step % 400 == 0:
            torch.save(model.state_dict(), "mixer.pt")
        if step >= k.steps:
            break
    print(f"{step} steps in {time.time() - began:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
