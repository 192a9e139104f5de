"""Regression of amber's age; the dropout is let out slowly."""

import argparse
import os
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 120)))
parser.add_argument("--start-dropout", type=float, default=0.4)
EASED = os.environ.get("PLANTED_FIX") == "1"


class AgeNet(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.drops = nn.ModuleList(nn.Dropout(dropout) for _ in range(2))
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in ((64, 512), (512, 512)))
        self.age = nn.Linear(512, 1)

    def forward(self, spectra):
        h = spectra
        for layer, drop in zip(self.layers, self.drops):
            h = drop(torch.tanh(layer(h)))
        return self.age(h).squeeze(-1)


class Anneal:
    def __init__(self, net, start, steps):
        self.net, self.start, self.steps = net, start, steps

    def advance(self, step):
        left = 1 - step // 5 * 5 / self.steps
        if EASED:
            left = 1.0
        for drop in self.net.drops:
            drop.p = self.start * left


def main(args):
    torch.set_num_threads(1)
    torch.manual_seed(28)
    torch._dynamo.config.recompile_limit = 512
    torch._dynamo.config.accumulated_recompile_limit = 2048
    spectra = torch.randn(4000, 64)
    age = spectra[:, :5].prod(1)
    net = AgeNet(args.start_dropout)
    anneal = Anneal(net, args.start_dropout, 400)
    predict = torch.compile(net, backend="aot_eager")
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    t0 = time.time()
    for step in range(args.steps):
        anneal.advance(step)
        pick = torch.randint(0, 4000, (128,))
        loss = (predict(spectra[pick]) - age[pick]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{args.steps} steps in {time.time() - t0:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(parser.parse_args())
