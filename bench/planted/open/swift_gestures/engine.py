import time
from collections import defaultdict

import torch
from torch.nn.functional import cross_entropy


class Engine:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.hooks = defaultdict(list)
        self.iteration = 0

    def on(self, event):
        def register(function):
            self.hooks[event].append(function)
            return function

        return register

    def fire(self, event):
        for hook in self.hooks[event]:
            hook(self)

    def step(self, frames, labels):
        logits = self.model(frames)
        self.loss = cross_entropy(logits, labels)
        self.optimizer.zero_grad(set_to_none=True)
        self.loss.backward()
        self.optimizer.step()
        self.correct = (logits.detach().argmax(1) == labels).float().mean()

    def run(self, loader, iterations):
        self.started = time.time()
        self.model.train()
        while self.iteration < iterations:
            for frames, labels in loader:
                self.step(frames, labels)
                self.iteration += 1
                self.fire("iteration")
                if self.iteration >= iterations:
                    break
        self.elapsed = time.time() - self.started
        self.fire("done")
