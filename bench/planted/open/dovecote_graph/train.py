"""Which loft does a pigeon belong to? Node classification on the graph of birds that were seen together."""

import os

import torch
from events import Bus
from flock import make_flock
from net import LoftNet
from scores import ScoreBoard
from watch import Validator

torch.set_num_threads(1)


def drop_edges(src, dst, share, generator):
    keep = torch.rand(len(src), generator=generator) >= share
    return src[keep], dst[keep]


def main():
    torch.manual_seed(11)
    steps = int(os.environ.get("PLANTED_STEPS", 900))
    flock = make_flock()
    net = LoftNet(flock.x.shape[1], 56, flock.lofts)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=5e-4, fused=True)
    bus = Bus()
    board = ScoreBoard(flock.lofts)
    board.attach(bus)
    Validator(net, flock).attach(bus)
    generator = torch.Generator().manual_seed(5)

    mean, clock = None, bus.clock()
    for step in range(1, steps + 1):
        src, dst = drop_edges(flock.src, flock.dst, 0.1, generator)
        logits = net(flock.x, src, dst)[flock.train]
        loss = torch.nn.functional.cross_entropy(logits, flock.y[flock.train])
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
        bus.emit("batch", step=step, truth=flock.y[flock.train], scores=logits.detach())
        if step % 25 == 0:
            print(f"{step:5d} loss {mean:.4f} {board.line()}", flush=True)
            board.reset()
    print(f"{steps} steps in {clock():.2f}s, loss {mean:.4f}")


if __name__ == "__main__":
    main()
