import time

import torch

from . import extras
from .score import Score
from .spectra import loader, spectra


class Denoiser:
    def __init__(self, cfg, folder):
        torch.manual_seed(44)
        self.cfg, self.folder = cfg, folder
        self.net = Score(cfg["dim"], cfg["width"], cfg["depth"], cfg["levels"], cfg["activation_checkpointing"])
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=cfg["lr"], fused=True)
        self.sigma = torch.logspace(-2, 0, cfg["levels"])
        self.average = extras.Average(self.net, **cfg["ema"])
        self.saver = extras.Saver(folder, **cfg["checkpoint"])
        self.hooks = extras.watch(self.net, cfg["debug"]["hooks"])
        self.held = spectra(cfg["validate"]["rows"], cfg["dim"], seed=45)

    def loss(self, clean, g=None):
        level = torch.randint(0, len(self.sigma), (len(clean),), generator=g)
        noise = torch.randn(clean.shape, generator=g)
        return (self.net(clean + self.sigma[level].unsqueeze(1) * noise, level) - noise).square().mean()

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        value = self.loss(self.held, torch.Generator().manual_seed(46)).item()
        self.net.train()
        return value

    def batches(self):
        data = loader(6000, self.cfg["dim"], self.cfg["batch"], seed=47)
        while True:
            yield from data

    def fit(self, steps):
        torch.autograd.set_detect_anomaly(self.cfg["debug"]["anomaly"])
        batches, begun = self.batches(), time.time()
        with extras.profiler(self.cfg["debug"]["profile"], self.folder) as tracer:
            for step in range(1, steps + 1):
                (clean,) = next(batches)
                loss = self.loss(clean)
                self.opt.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
                self.opt.step()
                self.average.after(step, self.net)
                self.saver.after(step, self.net)
                if tracer:
                    tracer.step()
                if step % self.cfg["log"]["every"] == 0:
                    print(f"step {step}: {loss.item():.4f}")
                if step % self.cfg["validate"]["every"] == 0:
                    print(f"held out: {self.validate():.4f}")
        print(f"{steps} steps in {time.time() - begun:.2f}s, loss {loss.item():.6f}")
