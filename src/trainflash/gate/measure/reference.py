"""The reference workload: a small byte-level GPT, so that a machine can be measured without a program of one's own.

Imports torch. Weights, data and order are fixed by the seed; the text is the bundled shard.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional

from trainflash.gate.evaluate.shard import shard_bytes
from trainflash.gate.measure.workload import Workload

BYTES = 256
WIDTH, LAYERS, HEADS, CONTEXT = 64, 2, 4, 64
BATCH = 8
SEED = 42


class Block(nn.Module):
    """Attention and a network, each behind a norm and added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.joint = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.network = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, positions, _ = x.shape
        heads = self.joint(self.norms[0](x)).view(batch, positions, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, positions, WIDTH))
        return x + self.network(self.norms[1](x))


class Model(nn.Module):
    """Bytes in, logits of the next byte out: [batch, positions] → [batch, positions, 256]."""

    def __init__(self) -> None:
        super().__init__()
        self.byte, self.place = nn.Embedding(BYTES, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, BYTES, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.norm(self.blocks(self.byte(ids) + self.place(places))))


def model() -> Model:
    """The model as it begins: the same weights always."""
    torch.manual_seed(SEED)
    return Model()


def workload() -> Workload:
    """On the accelerator where there is one."""
    device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    trained = model().to(device)
    return Workload(
        model=trained,
        optimizer=torch.optim.AdamW(trained.parameters(), lr=3e-4),
        batches=lambda: _windows(device),
        forward=lambda model, batch: model(batch[:, :-1]),
        loss=lambda logits, batch: functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten()),
        tokens=lambda batch: batch.shape[0] * (batch.shape[1] - 1),
    )


def _windows(device: str) -> Iterator[torch.Tensor]:
    text = torch.frombuffer(bytearray(shard_bytes()), dtype=torch.uint8)
    drawn = torch.Generator().manual_seed(SEED)
    while True:
        starts = torch.randint(len(text) - CONTEXT - 1, (BATCH,), generator=drawn)
        yield torch.stack([text[start : start + CONTEXT + 1] for start in starts.tolist()]).long().to(device)
