import time

import torch


class Trainer:
    def __init__(self, model, data, config, callbacks):
        self.model, self.data, self.config, self.callbacks = model, data, config, callbacks
        self.optimizer = torch.optim.Adagrad(model.parameters(), lr=config.lr * 5)
        self.step, self.value, self.best = 0, float("nan"), 0.0

    def call(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def train_step(self, users, items):
        self.optimizer.zero_grad()
        loss = self.model.loss(users, items)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self):
        began = time.time()
        for users, items in self.data.batches(self.config.batch, self.config.seed):
            self.value = self.train_step(users, items)
            self.step += 1
            self.call("on_step_end")
            if self.step >= self.config.steps:
                break
        self.call("on_fit_end")
        print(f"{self.step} steps in {time.time() - began:.3f}s, loss {self.value:.6f}")
