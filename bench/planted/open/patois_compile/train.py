import os
import time

import torch
import torch.nn.functional as F
from torch import nn

STEPS = int(os.environ.get("PLANTED_STEPS", 130))


class Dialects(nn.Module):
    def __init__(self, width=192, depth=3):
        super().__init__()
        self.sound = nn.Embedding(64, width)
        self.convs = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(depth))
        self.norms = nn.ModuleList(nn.GroupNorm(4, width) for _ in range(depth))
        self.place = nn.Linear(width, 26)

    def forward(self, sounds):
        h = self.sound(sounds).transpose(1, 2)
        for conv, norm in zip(self.convs, self.norms):
            h = h + F.silu(norm(conv(h)))
        return self.place(h.mean(-1))


def words(g, length):
    sounds = torch.randint(0, 64, (12, length), generator=g)
    return sounds, sounds[:, 0] % 26


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    g = torch.Generator().manual_seed(5)
    model = Dialects()
    predict = torch.compile(model, backend="aot_eager", dynamic=True)
    teacher = Dialects(width=32, depth=1).eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    began = time.time()
    for step in range(STEPS):
        sounds, place = words(g, 40 + step % 9)
        with torch.no_grad():
            hint = teacher(sounds).softmax(-1)
        logits = predict(sounds)
        loss = F.cross_entropy(logits, place) + 0.1 * F.kl_div(logits.log_softmax(-1), hint, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, f"{loss.item():.4f}", flush=True)
    print(f"{STEPS} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
