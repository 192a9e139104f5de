import time

import torch
from torch.nn.functional import cross_entropy

from . import callbacks
from .corpus import batches, make_corpus
from .model import Tagger


class Run:
    def __init__(self, cfg, folder):
        torch.manual_seed(cfg["seed"])
        self.cfg, self.folder = cfg, folder
        self.model = Tagger(**cfg["model"])
        self.optim = torch.optim.Adam([p for p in self.model.parameters() if p.requires_grad], lr=cfg["optim"]["lr"])
        self.callbacks = callbacks.from_config(cfg["callbacks"])
        self.step, self.smooth_loss = 0, None

    def emit(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def fit(self, steps):
        d, m = self.cfg["data"], self.cfg["model"]
        corpus = make_corpus(d["sentences"], d["length"], m["vocabulary"], m["tags"], self.cfg["seed"])
        self.emit("on_fit_start")
        started = time.time()
        for tokens, labels in batches(*corpus, d["batch"], self.cfg["seed"]):
            loss = cross_entropy(self.model(tokens).flatten(0, 1), labels.flatten())
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            value = loss.item()
            self.step += 1
            self.smooth_loss = value if self.smooth_loss is None else 0.95 * self.smooth_loss + 0.05 * value
            self.emit("on_step_end")
            if self.step == steps:
                break
        print(f"{steps} steps in {time.time() - started:.2f}s, loss {value:.6f}")
