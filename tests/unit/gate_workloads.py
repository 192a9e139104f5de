"""Step functions that tests bench: a small GPT with hand-written attention, and ways to be wrong."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from trainflash.gate import Workload

VOCABULARY, WIDTH, LAYERS, HEADS, CONTEXT, BATCH = 96, 32, 2, 2, 32, 2


class Block(nn.Module):
    def __init__(self, fused: bool):
        super().__init__()
        self.fused = fused
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        batch, positions, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, positions, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        if self.fused:
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            hidden = torch.ones(positions, positions, dtype=torch.bool).triu(1)
            seen = (q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5).masked_fill(hidden, -1e9).softmax(-1) @ v
        x = x + self.out(seen.transpose(1, 2).reshape(batch, positions, WIDTH))
        return x + self.down(functional.gelu(self.up(x)))


class Gpt(nn.Module):
    def __init__(self, tied: bool = False, fused: bool = False):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block(fused) for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.token.weight

    def forward(self, ids):
        return self.head(self.blocks(self.token(ids) + self.place(torch.arange(ids.shape[1]))))


def loss(logits, batch):
    return functional.cross_entropy(logits.flatten(0, 1), batch.flatten())


def gpt(tied: bool = False, fused: bool = False) -> Workload:
    torch.manual_seed(0)
    model = Gpt(tied, fused)
    batches = [torch.randint(VOCABULARY, (BATCH, CONTEXT)) for _ in range(3)]
    return Workload(model, torch.optim.SGD(model.parameters(), 0.01), batches, loss=loss)


def accumulating() -> Workload:
    made = gpt()
    made.accumulate = 2
    return made


def diverging() -> Workload:
    made = gpt()
    made.loss = lambda logits, batch: loss(logits, batch) * float("nan")
    return made


def without_loss() -> Workload:
    made = gpt()
    made.loss = None
    return made


def without_batches() -> Workload:
    made = gpt()
    made.batches = []
    return made


def whole_step() -> Workload:
    made = gpt()

    def step(batch):
        value = loss(made.model(batch), batch)
        value.backward()
        made.optimizer.step()
        made.optimizer.zero_grad()
        return value

    made.step = step
    return made


def no_workload():
    return 3
