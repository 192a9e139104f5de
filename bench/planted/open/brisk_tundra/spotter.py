import os
import time
from pathlib import Path

import torch
import yaml
from torch import nn

from augment import chain
from clips import record, stream

STEPS = int(os.environ.get("PLANTED_STEPS", "200"))


class LogBands(nn.Module):
    def __init__(self, n_fft, hop, bands):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        edges = torch.linspace(0, 1, bands + 2) ** 1.6 * (n_fft // 2)
        k = torch.arange(n_fft // 2 + 1.0)[:, None]
        up = (k - edges[:-2]) / (edges[1:-1] - edges[:-2])
        down = (edges[2:] - k) / (edges[2:] - edges[1:-1])
        self.register_buffer("bank", torch.minimum(up, down).clamp(min=0))

    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True).abs()
        return torch.log1p(10 * spec.transpose(1, 2) @ self.bank).unsqueeze(1)


def conv(a, b, stride):
    return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())


def spotter(features, words):
    return nn.Sequential(
        LogBands(**features), conv(1, 16, 2), conv(16, 32, 2), conv(32, 48, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, words)
    )


def updates(net, batches, lr):
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    for wave, word in batches:
        logits = net(wave)
        loss = nn.functional.cross_entropy(logits, word)
        opt.zero_grad()
        loss.backward()
        opt.step()
        yield loss.item(), (logits.argmax(1) == word).float().mean().item()


def main():
    cfg = yaml.safe_load((Path(__file__).parent / "kws.yaml").read_text())
    torch.manual_seed(cfg["seed"])
    waves, label = record(cfg["clips"], cfg["words"], cfg["rate"], cfg["seed"])
    augment = chain(cfg["augment"], cfg["rate"], cfg["seed"])
    batches = stream(waves, label, cfg["batch"], augment, cfg["seed"] + 1)
    net = spotter(cfg["features"], cfg["words"])
    t0, loss = time.perf_counter(), float("nan")
    for n, (loss, acc) in zip(range(1, STEPS + 1), updates(net, batches, cfg["lr"])):
        if n % cfg["log_every"] == 0:
            print(f"{n:5d} loss {loss:.4f} acc {acc:.2f}", flush=True)
    print(f"{STEPS} steps in {time.perf_counter() - t0:.2f} s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
