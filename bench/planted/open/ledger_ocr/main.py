import os
import time

import torch
from torch import nn

from ink import lines
from score import Spacing

BLANK = 10


class Reader(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((1, None)),
        )
        self.along = nn.Sequential(nn.Conv1d(2 * width, 48, 5, padding=2), nn.ReLU())
        self.out = nn.Linear(48, BLANK + 1)

    def forward(self, x):
        h = self.along(self.conv(x).squeeze(2))
        return self.out(h.transpose(1, 2))


def main():
    torch.manual_seed(1888)
    torch.set_num_threads(1)
    steps, batch, digits = int(os.environ.get("PLANTED_STEPS", 300)), 32, 32
    g = torch.Generator().manual_seed(1889)
    images, values = lines(3200, digits, g)
    net, spacing = Reader(), Spacing(BLANK)
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    lengths = torch.full((batch,), digits)
    began = time.perf_counter()
    for step in range(1, steps + 1):
        pick = torch.randint(len(images), (batch,), generator=g)
        logits = net(images[pick])
        frames = torch.full((batch,), logits.shape[1])
        scores = logits.log_softmax(-1)
        loss = nn.functional.ctc_loss(scores.transpose(0, 1), values[pick], frames, lengths, blank=BLANK)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        spacing(scores.detach(), values[pick])
        if step % 20 == 0:
            print(f"step {step}: ctc {loss.item():.4f}, unevenness {spacing.unevenness:.3f}")
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
