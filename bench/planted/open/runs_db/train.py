import os
import tempfile
import time

import torch
from torch import nn
from tracker import Tracker

CLASSES = 20


class Mixer(nn.Module):
    def __init__(self, tokens=36, width=64):
        super().__init__()
        self.embed = nn.Linear(16, width)
        self.across = nn.Sequential(nn.LayerNorm(tokens), nn.Linear(tokens, 72), nn.GELU(), nn.Linear(72, tokens))
        self.along = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, patches):
        x = self.embed(patches)
        x = x + self.across(x.transpose(1, 2)).transpose(1, 2)
        x = x + self.along(x)
        return self.head(x.mean(1))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(17)
    steps = int(os.environ.get("PLANTED_STEPS", 240))
    labels = torch.randint(0, CLASSES, (4096,))
    patches = torch.randn(4096, 36, 16) + torch.randn(CLASSES, 16)[labels][:, None]
    model = Mixer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=40)
    with tempfile.TemporaryDirectory() as folder:
        tracker = Tracker(os.path.join(folder, "runs.sqlite"))
        start = time.time()
        for step in range(steps):
            pick = torch.randint(0, 4096, (48,))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(patches[pick])
                loss = nn.functional.cross_entropy(logits, labels[pick])
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            warm.step()
            hits = (logits.argmax(1) == labels[pick]).float().mean()
            tracker.metrics(step, loss=loss.item(), norm=norm.item(), accuracy=hits.item(), rate=warm.get_last_lr()[0])
        print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
