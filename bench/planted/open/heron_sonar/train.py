"""Sonar target classification with a moving curriculum."""

import argparse
import time

import torch
import torch.nn.functional as F

from classifier import Classifier
from conf import load
from curriculum import Curriculum
from feeding import rounds
from pings import Pings


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value):
        self.total += value
        self.count += 1

    @property
    def mean(self):
        return self.total / max(self.count, 1)


def step(model, optimizer, features, labels):
    logits = model(features)
    loss = F.cross_entropy(logits, labels, label_smoothing=0.05)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    if not torch.isfinite(norm):
        raise RuntimeError("gradient is not finite")
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conf", default="conf.json")
    args = parser.parse_args()
    conf = load(args.conf)
    torch.manual_seed(conf.seed)
    dataset = Pings(conf)
    sampler = Curriculum(len(dataset), conf.subset, conf.seed)
    model = Classifier(conf.ping_length + conf.bank_filters + 128, conf.width, conf.blocks)
    optimizer = torch.optim.Adam(model.parameters(), lr=conf.lr)
    steps, value, began = 0, float("nan"), time.time()
    for epoch, loader in rounds(dataset, sampler, conf):
        meter = Meter()
        for features, labels in loader:
            value = step(model, optimizer, features, labels)
            meter.add(value)
            steps += 1
            if conf.step_limit and steps >= conf.step_limit:
                break
        print(f"epoch {epoch}: {meter.count} steps, mean loss {meter.mean:.4f}", flush=True)
        if conf.step_limit and steps >= conf.step_limit:
            break
    print(f"{steps} steps in {time.time() - began:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
