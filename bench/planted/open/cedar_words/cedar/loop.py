import time

import torch
from torch import nn

from .mixer import KeywordNet
from .plan import Plan
from .sounds import SpokenWords


def update(net, optimizer, x, y, plan):
    total = 0.0
    optimizer.zero_grad()
    for part_x, part_y in zip(x.chunk(plan.pieces), y.chunk(plan.pieces)):
        loss = nn.functional.cross_entropy(net(part_x), part_y) / plan.pieces
        loss.backward()
        total += loss.detach()
    nn.utils.clip_grad_norm_(net.parameters(), plan.clip)
    optimizer.step()
    return total


def train(plan=None):
    plan = plan or Plan()
    torch.manual_seed(51)
    words, net = SpokenWords(), KeywordNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=plan.lr)
    start = time.time()
    for n in range(plan.updates):
        loss = update(net, optimizer, *words.take(plan.global_batch), plan)
        if n % 65 == 0:
            print(f"update {n}: {loss.item():.4f}")
    print(f"{plan.updates} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
