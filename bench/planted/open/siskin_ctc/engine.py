"""A small trainer with hooks, shared by our audio projects."""

import time


class Hook:
    def before_fit(self, engine): ...

    def before_step(self, engine): ...

    def after_backward(self, engine): ...

    def after_step(self, engine): ...

    def after_fit(self, engine): ...


class Engine:
    def __init__(self, model, criterion, optimizer, hooks=()):
        self.model, self.criterion, self.optimizer = model, criterion, optimizer
        self.hooks = list(hooks)
        self.step = 0
        self.mean_loss = None
        self.last_output = None
        self.seconds = 0.0

    def call(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)

    def one(self, batch):
        self.call("before_step")
        output = self.model(batch["wave"])
        loss = self.criterion(output, batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.call("after_backward")
        self.optimizer.step()
        self.step += 1
        self.last_output = output.detach()
        value = loss.item()
        self.mean_loss = value if self.mean_loss is None else 0.95 * self.mean_loss + 0.05 * value
        self.call("after_step")

    def fit(self, source, steps):
        self.model.train()
        self.call("before_fit")
        began = time.time()
        while self.step < steps:
            for batch in source:
                self.one(batch)
                if self.step == steps:
                    break
        self.seconds = time.time() - began
        self.call("after_fit")

    def summary(self):
        return f"{self.step} steps in {self.seconds:.2f}s, loss {self.mean_loss:.4f}"
